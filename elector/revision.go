package elector

import (
	"cmp"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/failuredetector"
)

// A roster may carry settings and rights besides the voters. A change of these leaves the voters
// alone (R14).

// followSettings continues with what the roster says, and else with what this agent was started
// with.
func (e *Elector) followSettings() {
	var s election.Settings
	if e.roster != nil {
		s = e.roster.Settings
	}
	t := e.given.Timing
	e.cfg.FixedDeadline = e.given.FixedDeadline
	if s.Lease != 0 {
		if t.Lease = s.Lease; !fits(t.Heartbeat, t.Lease) {
			t.Heartbeat = t.Lease / 6
		}
		if e.given.FixedDeadline > 0 {
			e.cfg.FixedDeadline = min(max(e.given.FixedDeadline, failuredetector.MinIntervals*t.Heartbeat), t.Lease)
		}
		e.lives.shortest = min(cmp.Or(e.lives.shortest, s.Lease), s.Lease)
	}
	e.cfg.Timing = t
	e.rules.Heartbeat, e.rules.Lease = t.Heartbeat, t.Lease
	e.sends.Keep(t.Lease)
	algorithm := cmp.Or(Algorithm(s.Algorithm), e.given.Algorithm)
	if algorithm == e.cfg.Algorithm {
		return
	}
	e.cfg.Algorithm, e.rounds = algorithm, e.counters.Steps // no step starts two rounds of one election
	for _, c := range e.contests.rows {
		c.Select(newSelection(e.cfg, c.Name(), e.cfg.firstNumber()+e.rounds))
	}
}

// speaks reports whether the peer's version knows all that this agent's roster says. Under the
// same version it would hold another content, so nothing is told to it or heard of it.
func (e *Elector) speaks(p *peer) bool {
	if !e.cfg.Quorum {
		return true
	}
	level := max(e.heldRoster().Level(), e.roster.Level())
	if d := e.change.driver; d != nil {
		level = max(level, d.Proposal().Level())
	}
	return p.level >= level
}

// revised returns the roster that a change of settings or rights asks for.
func (e *Elector) revised(in election.ChangeRoster) (*election.Roster, *election.Refusal) {
	r := *e.roster
	if in.Settings != (election.Settings{}) && !r.Follows() { // from now on it names all of them
		r.Settings = election.Settings{Algorithm: string(e.cfg.Algorithm), Lease: e.cfg.Timing.Lease}
	}
	r.Settings.Algorithm = cmp.Or(in.Settings.Algorithm, r.Settings.Algorithm)
	r.Settings.Lease = cmp.Or(in.Settings.Lease, r.Settings.Lease)
	if in.Right.Election == "" {
		return &r, nil
	}
	i, has := slices.BinarySearchFunc(r.Rights, in.Right.Election, func(r election.Right, e election.Name) int {
		return cmp.Compare(r.Election, e)
	})
	r.Rights = slices.Clone(r.Rights)
	if has {
		r.Rights = slices.Delete(r.Rights, i, i+1)
	}
	switch {
	case len(in.Right.Agents) > 0, in.Right.MaxPriority > 0:
		r.Rights = slices.Insert(r.Rights, i, in.Right)
	case !has:
		return nil, &election.Refusal{Why: election.DeniedNoSuchRight, Election: in.Right.Election}
	}
	if len(r.Rights) > election.MaxRights || election.RightsSize(r.Rights) > election.MaxRightsSize {
		return nil, &election.Refusal{Why: election.DeniedRights, Count: len(r.Rights)}
	}
	return &r, nil
}

// misfit is why the agents can't follow a revised roster; nil: they can. No agent may be connected
// whose version does not know it. While nothing needs its level yet, all voters must be
// connected, since their levels are not known otherwise.
func (e *Elector) misfit(r *election.Roster) *election.Refusal {
	for _, v := range r.Voters {
		if e.roster.Level() < r.Level() && v.Peer != e.cfg.Self.Peer && !e.isConnected(v.Peer) {
			return &election.Refusal{Why: election.DeniedNotConnected, Agent: v.Name}
		}
	}
	changes := r.Lease() != e.roster.Lease()
	if changes && !fits(e.given.Timing.Heartbeat, r.Lease()) {
		return &election.Refusal{Why: election.DeniedHeartbeat, Agent: e.cfg.Name}
	}
	for i, p := range e.peers.rows {
		switch {
		case p.level < r.Level():
			return &election.Refusal{Why: election.DeniedOlderVersion, Agent: e.nameOf(e.peers.keys[i])}
		case changes && !fits(p.beat, r.Lease()):
			return &election.Refusal{Why: election.DeniedHeartbeat, Agent: e.nameOf(e.peers.keys[i])}
		}
	}
	return nil
}
