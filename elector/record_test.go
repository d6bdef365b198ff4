package elector

import (
	"fmt"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/virtual"
)

// recorded is what is on record after this output.
func recorded(before election.LifeRecord, out election.Output) election.LifeRecord {
	if out.Record == nil {
		return before
	}
	return virtual.Recorded(before, out.Record)
}

func rowOf(r election.LifeRecord, name election.Name) election.Authority {
	for _, a := range r.Rows {
		if a.Election == name {
			return a
		}
	}
	return election.Authority{Election: name}
}

// unrecorded describes what an output, or the picture after it, makes visible that is not on
// record; empty: nothing (K1). The next life would not know it. All harnesses of this package check
// that after each step.
func unrecorded(e *Elector, r election.LifeRecord, out election.Output) string {
	for _, c := range e.contests.rows {
		is, want := rowOf(r, c.Name()), e.authority(c)
		if is != want && (is.Term != 0 || want.Highest != 0) { // the row of a forgotten election may stay for a while

			return fmt.Sprintf("on record is %+v, it is %+v", is, want)
		}
	}
	for _, c := range e.Contests() {
		if a := rowOf(r, c.Election); c.State == Leading && (a.Term != c.Term || a.Until < c.ValidUntil || a.Ending != election.Ending{}) {
			return fmt.Sprintf("readers are shown %+v, on record is %+v", *c, a)
		}
	}
	for _, w := range out.Withdraw {
		if a := rowOf(r, w.Election); a.Term != 0 && (a.Term != w.Term || a.Ending.Reason == "" || a.Until < w.StopBy) {
			return fmt.Sprintf("steps down by %+v, on record is %+v", w, a)
		}
	}
	for _, m := range out.Send {
		if problem := unrecordedSend(e, r, m.Message); problem != "" {
			return problem
		}
	}
	for _, n := range out.Announce {
		if a := rowOf(r, n.Election); n.Leader == e.cfg.Self && a.Term < n.Term {
			return fmt.Sprintf("announces %+v, on record is %+v", n, a)
		}
	}
	return ""
}

func unrecordedSend(e *Elector, r election.LifeRecord, m election.Message) string {
	switch m := m.(type) {
	case election.VoteRequest:
		if a := rowOf(r, m.Election); max(a.Highest, r.Spent) < m.Term {
			return fmt.Sprintf("asks for %s term %d, on record is %+v", m.Election, m.Term, a)
		}
	case election.Release:
		// Without quorum it may lead the next term at once.
		if a := rowOf(r, m.Election); a.Term != 0 && (e.cfg.Quorum || a.Term == m.Term) {
			return fmt.Sprintf("releases %s term %d, on record is %+v", m.Election, m.Term, a)
		}
	case election.Heartbeat:
		for _, c := range m.Claims {
			a := rowOf(r, c.Election)
			if c.Election != election.RosterElection && a.Term != 0 && (a.Term < c.Term || a.Until < e.now.Add(c.Remaining)) || max(a.Highest, r.Spent) < c.Term {
				return fmt.Sprintf("claims %+v, on record is %+v", c, a)
			}
		}
	}
	return ""
}
