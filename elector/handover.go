package elector

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
)

func (e *Elector) campaign(in election.Campaign) *election.Refusal {
	c := e.contest(in.Election)
	if c == nil {
		return &election.Refusal{Why: election.DeniedElections, Count: e.names()}
	}
	e.lives.claim(in.Election)
	e.stand(c, true, election.Candidacy{Election: in.Election, Priority: in.Priority, Meta: in.Meta}, in.LastResort)
	return nil
}

func (e *Elector) stand(c *entry, candidate bool, as election.Candidacy, last bool) {
	c.Stand(candidate, as.Priority)
	if c.LastResort = last; last {
		as.Priority = 0 // the other agents get priority 0, so that they do not count a last resort as a candidate
	}
	if c.Name() != election.RosterElection {
		e.stands.set(candidate, as)
	}
}

// withdrawCandidacy ends a candidacy and the leadership that depends on it. The best remaining candidate is
// next, perhaps another one of this host. If all programs have stopped already, this step releases the term.
func (e *Elector) withdrawCandidacy(in election.Withdraw) {
	c := e.held(in.Election)
	if c == nil {
		return
	}
	e.lives.claim(in.Election)
	e.stand(c, in.Remaining > 0, election.Candidacy{Election: in.Election, Priority: in.Remaining, Meta: in.Meta}, false)
	e.carry(c, c.StepDown(c, election.ReasonWithdrawn, ""))
	c.Stopped(in.Stopped)
}

func (e *Elector) resign(in election.Resign) *election.Refusal {
	c := e.held(in.Election)
	if refusal := e.mustLead(c, in.Election, in.Term); refusal != nil {
		return refusal
	}
	if !c.HasHeir(c) {
		return &election.Refusal{Why: election.DeniedNobodyElse, Election: in.Election}
	}
	e.carry(c, c.StepDown(c, election.ReasonResigned, ""))
	return nil
}

func (e *Elector) transfer(in election.Transfer) *election.Refusal {
	c := e.held(in.Election)
	if refusal := e.mustLead(c, in.Election, in.Term); refusal != nil {
		return refusal
	}
	if in.To == e.cfg.Self.Peer {
		return &election.Refusal{Why: election.DeniedLeadsAlready, Election: in.Election}
	}
	m, known := e.view.Find(in.To)
	if !known {
		return &election.Refusal{Why: election.DeniedTargetUnknown}
	}
	if _, why := e.present(c.Name(), m); why != 0 {
		return &election.Refusal{Why: election.DeniedTargetUnable, Election: in.Election, Agent: m.Name, Obstacle: why}
	}
	e.carry(c, c.StepDown(c, election.ReasonTransferred, in.To))
	return nil
}

func (e *Elector) mustLead(c *entry, name election.Name, t election.Term) *election.Refusal {
	switch {
	case c == nil || c.Role() != contest.Leader && c.Role() != contest.Leaving, t != 0 && t != c.Term():
		return &election.Refusal{Why: election.DeniedNotLeader, Election: name}
	case c.Role() == contest.Leaving:
		return &election.Refusal{Why: election.DeniedHandingOver, Election: name}
	}
	return nil
}

func (e *Elector) drain(in election.Drain) {
	was := e.draining
	e.draining = in.On
	switch {
	case e.stopping:
	case !in.On:
		e.leaving = leaving{}
	case !was:
		e.leaving.begin(e, election.ReasonDraining, drainTurns*e.cfg.Lease)
	}
	e.reply(in.Request, nil)
}

// leaving hands over all that this agent leads: in turns, so that the agents that elect are not too busy to vote.
type leaving struct {
	why    election.Reason  // empty: this agent keeps what it leads
	by     election.Instant // from then on, it does not wait before it hands over the rest
	nextAt election.Instant // when more is handed over, though no other agent leads what was handed over before
}

const (
	leavingAtOnce    = 8                      // how many elections it hands over before it waits until others lead some of them
	drainTurns       = 10                     // how many leases the turns of a drain may take
	maxShutdownTurns = 500 * time.Millisecond // so that the programs of the last turn have a lease in which to stop before the process ends
)

func (l *leaving) begin(e *Elector, why election.Reason, turns time.Duration) {
	*l = leaving{why: why, by: e.now.Add(turns)}
	l.proceed(e)
}

// proceed waits at most a vote timeout for each election handed over, and not at all for one that nobody else can lead.
func (l *leaving) proceed(e *Elector) {
	l.nextAt = election.Never
	if l.why == "" {
		return
	}
	awaited, timeout := 0, l.by
	for _, c := range e.contests.rows {
		if e.now < c.awaitedUntil && (c.Role() == contest.Leaving || c.Vacant()) {
			awaited++
			timeout = min(timeout, c.awaitedUntil)
		}
	}
	for _, c := range e.contests.rows {
		leads := c.Role() == contest.Leader
		switch {
		case !leads && c.Role() != contest.Nominee:
			continue
		case l.why == election.ReasonDraining && c.Name() == election.RosterElection:
			continue // a draining agent still drives a change of the voters
		case leads && awaited >= leavingAtOnce && e.now < l.by:
			l.nextAt = timeout
			continue
		case leads && c.HasHeir(c):
			awaited++
			c.awaitedUntil = e.now.Add(e.cfg.VoteTimeout())
			timeout = min(timeout, c.awaitedUntil)
		}
		e.carry(c, c.Leave(c, l.why))
	}
}

// HandingOver reports whether this agent has a term that is not released yet, or a write that is not durable yet.
func (e *Elector) HandingOver() bool {
	writes := e.barred.Code == "" && !e.ledger.Settled() // a barred agent writes nothing any more
	return writes || slices.ContainsFunc(e.contests.rows, func(c *entry) bool { return c.Term() != 0 })
}

// If the host measures a suspend in whole seconds, its clock may count the suspend up to a
// second too long or too short. Then an expired lease could look valid, or a promise that still
// runs could look expired. So no deadline from before a suspend counts after it.

// suspended ends every bid, and every lease that this agent counts: its own, and those of the leaders that it
// follows. Its voter turns its promises into holds, as after a start.
func (e *Elector) suspended() {
	e.resumed = e.now
	e.voter.Suspended(e.now)
	e.change.Suspended(e.now)
	e.touchAll()
	for _, c := range e.contests.rows {
		e.carry(c, c.Suspended(c))
	}
}
