package elector

import "github.com/doyen-election/doyen/election"

// A suspend is counted by the clock only as well as the host can tell its length:
// by a clock of whole seconds it may be counted as a second too short or too long.
// Too short, and a lease looks as if it still ran. Too long, and a voter's promise,
// or a driver's wait for promises, looks as if it had ended. So nothing that was
// counted on this agent's clock before a suspend counts after it.

// suspended ends every lease this agent counts, its own and those of the leaders it
// follows, and every attempt. What answers to older sends still arrive are of terms
// that it never asks for again (H1, H4), or older than the first heartbeat of what
// it wins from now on. Its voter holds what it promised as after a start.
func (e *Elector) suspended() {
	e.resumed = e.now
	e.voter.Suspended(e.now)
	if d := e.change.driver; d != nil {
		d.Recount()
		e.change.resendAt = e.now
	}
	e.touchAll()
	for _, c := range e.contests.rows {
		switch c.role() {
		case leader:
			e.withdraw(c, departure{reason: election.ReasonSuspended})
			continue
		case draining:
			c.held.leaving.suspended = true // its heartbeats would have others name it for too long
		case nominee:
			e.abandon(c)
			c.selection.Stop()
		}
		e.doubt(c)
	}
}

// doubt stops naming a leader until it is heard with an instant that lies after the
// suspend, and leaves it the time for that before anybody stands against it.
func (e *Elector) doubt(c *contest) {
	k := c.leader
	if k.holder == (election.Holder{}) {
		return
	}
	e.forget(c, election.ReasonSuspended)
	if e.cfg.Quorum && c.vacantSince == election.Never {
		c.rumour = e.heed(c, k)
	}
}
