package elector

import (
	"time"

	"github.com/doyen-election/doyen/election"
)

// departure is how and why a leadership ends.
type departure struct {
	reason    election.Reason
	to        election.PeerID // whom a transfer names, or a leader that can't write
	standDown time.Duration
	stopBy    election.Instant // whoever acts under the term was told so
	stopped   bool
	suspended bool // the host was, since
}

// orderly reports whether the lease was certainly still good when the leader
// withdrew, and how long it still runs is known.
func (d departure) orderly() bool {
	if d.suspended {
		return false
	}
	switch d.reason {
	case election.ReasonLeaseExpired, election.ReasonSuperseded, election.ReasonSuspended:
		return false
	}
	return true
}

// withdraw ends this agent's own leadership. Whoever acts on its behalf is told
// first; the term is released once they have stopped, or the last deadline
// they were told has passed (H6).
func (e *Elector) withdraw(c *contest, d departure) {
	d.stopBy = e.leaseEnd(c)
	c.held.leaving = &d
	c.touch()
	if c.name == election.RosterElection {
		d.stopped = true // no program acts on it
	} else {
		e.out.Withdraw = append(e.out.Withdraw, election.Withdrawal{Election: c.name, Term: c.held.term, StopBy: d.stopBy, Reason: d.reason})
	}
	e.forget(c, d.reason)
	c.wake(d.stopBy)
}

// stopped takes the receipt that nobody acts under the term any more.
func (e *Elector) stopped(in election.Stopped) {
	if c := e.held(in.Election); c != nil && c.role() == draining && c.held.term == in.Term {
		c.held.leaving.stopped = true
	}
}

// finishDraining releases the term when that is safe.
func (e *Elector) finishDraining(c *contest) {
	if d := c.held.leaving; !d.stopped && e.now < d.stopBy {
		c.wake(d.stopBy)
		return
	}
	target, standDown := e.successor(c)
	release := election.Release{Election: c.name, Term: c.held.term, Holder: e.cfg.Self,
		Target: target, StandDown: standDown, Leaving: e.stopping}
	if c.bid != nil { // asked for while leading, and perhaps granted; first, so that whoever follows asks for more
		higher := release
		higher.Term = c.bid.lease.Term
		e.releaseTo(higher)
	}
	e.releaseTo(release)
	c.held, c.bid = nil, nil
	c.vacantSince = e.now
	if standDown > 0 {
		c.standDownUntil = e.now.Add(standDown)
	}
	if target != "" {
		c.offer.made(target)
		c.notBefore = e.now.Add(e.cfg.Timing.voteTimeout())
	}
	e.seek(c)
}

// successor returns whom the term is given to, nobody in particular if empty,
// and for how long this agent leaves the field to others. It is decided at the
// release: whoever was to follow may have gone, or been passed over, while those
// who acted under the term were stopping.
func (e *Elector) successor(c *contest) (target election.PeerID, standDown time.Duration) {
	best := e.bestOther(c)
	switch d := c.held.leaving; d.reason {
	case election.ReasonPreempted:
		if best.Priority <= c.priority {
			return "", 0 // the rival is gone
		}
		return best.Peer, d.standDown
	case election.ReasonWithdrawn:
		if c.standing && e.ownRank(c).Above(best) {
			return "", 0
		}
		return best.Peer, 0
	case election.ReasonTransferred, election.ReasonDisk:
		if m, known := e.view.Find(d.to); known {
			if _, ok := e.present(c, m); ok {
				return d.to, d.standDown
			}
		}
		target, _ = e.heir(c)
		return target, d.standDown
	case election.ReasonResigned, election.ReasonDraining, election.ReasonShutdown, election.ReasonBarred:
		target, _ = e.heir(c)
		return target, d.standDown
	}
	return "", 0
}

// releaseTo tells the voters and everybody else connected.
func (e *Elector) releaseTo(m election.Release) {
	if e.roster.Has(e.cfg.Self.Peer) {
		e.send(e.cfg.Self.Peer, m)
	}
	e.sendAllConnected(m)
}

func (e *Elector) campaign(in election.Campaign) *election.Refusal {
	c := e.contest(in.Election)
	if c == nil {
		return &election.Refusal{Why: election.DeniedElections, Count: e.names()}
	}
	e.stand(c, true, in.Priority)
	return nil
}

// stand begins or ends this agent's candidacy.
func (e *Elector) stand(c *contest, stands bool, priority int) {
	c.standing, c.priority = stands, priority
	if c.name != election.RosterElection {
		e.stands.set(c.name, stands, priority)
	}
}

// withdrawCandidacy ends a candidacy, and what it led with it: the best candidate
// left follows, which may be another one of this host.
func (e *Elector) withdrawCandidacy(name election.Name, remaining int) {
	c := e.held(name)
	if c == nil {
		return
	}
	e.stand(c, remaining > 0, remaining)
	if c.role() == leader {
		e.withdraw(c, departure{reason: election.ReasonWithdrawn})
	}
}

func (e *Elector) resign(in election.Resign) *election.Refusal {
	c := e.held(in.Election)
	if refusal := e.mustLead(c, in.Election); refusal != nil {
		return refusal
	}
	if _, exists := e.heir(c); !exists {
		return &election.Refusal{Why: election.DeniedNobodyElse, Election: in.Election}
	}
	e.withdraw(c, departure{reason: election.ReasonResigned, standDown: e.cfg.Timing.Lease})
	return nil
}

func (e *Elector) transfer(in election.Transfer) *election.Refusal {
	c := e.held(in.Election)
	if refusal := e.mustLead(c, in.Election); refusal != nil {
		return refusal
	}
	if in.To == e.cfg.Self.Peer {
		return &election.Refusal{Why: election.DeniedLeadsAlready, Election: in.Election}
	}
	m, known := e.view.Find(in.To)
	if !known {
		return &election.Refusal{Why: election.DeniedTargetUnknown}
	}
	if _, ok := e.present(c, m); !ok {
		return &election.Refusal{Why: election.DeniedTargetUnable, Election: in.Election, Agent: m.Name, Obstacle: e.whyNot(c, m)}
	}
	e.withdraw(c, departure{reason: election.ReasonTransferred, to: in.To, standDown: e.transferStandDown()})
	return nil
}

// whyNot says why another member that is not present can't lead.
func (e *Elector) whyNot(c *contest, m election.Member) election.Obstacle {
	r, stands := e.rank(m, c.name)
	switch {
	case !stands:
		return election.NotCandidate
	case r.Priority <= 0:
		return election.NoPriority
	case m.Draining:
		return election.DrainingNow
	case !e.isConnected(m.Peer):
		return election.NotConnected
	}
	return election.DoesNotAnswer
}

func (e *Elector) mustLead(c *contest, name election.Name) *election.Refusal {
	switch {
	case c == nil || c.role() != leader && c.role() != draining:
		return &election.Refusal{Why: election.DeniedNotLeader, Election: name}
	case c.role() == draining:
		return &election.Refusal{Why: election.DeniedHandingOver, Election: name}
	}
	return nil
}

func (e *Elector) drain(in election.Drain) {
	e.draining = in.On
	if in.On {
		e.leaveAll(election.ReasonDraining)
	}
	e.reply(in.Request, nil)
}

func (e *Elector) shutdown() {
	e.stopping = true
	e.leaveAll(election.ReasonShutdown)
}

// leaveAll hands over everything led here to whoever comes next. An agent that
// drains still drives a change of the voters: that is maintenance too.
func (e *Elector) leaveAll(why election.Reason) {
	for _, c := range e.contests.rows {
		if why == election.ReasonDraining && c.name == election.RosterElection {
			continue
		}
		switch c.role() {
		case leader:
			e.withdraw(c, departure{reason: why, standDown: e.cfg.Timing.Lease})
		case nominee:
			e.abandon(c)
			c.selection.Stop()
		}
	}
}

// HandingOver reports whether a term of this agent is not released yet, or what
// it should remember of the hand-over is not on disk.
func (e *Elector) HandingOver() bool {
	if e.barred.Code == "" && !e.ledger.Settled() { // a barred agent writes nothing any more
		return true
	}
	for _, c := range e.contests.rows {
		if c.role() == leader || c.role() == draining {
			return true
		}
	}
	return false
}
