package agent

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/campaign"
	"github.com/doyen-election/doyen/agent/hook"
	"github.com/doyen-election/doyen/agent/proof"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// actors puts on record what acts under this agent's terms. The loop calls it for programs,
// other goroutines for runs of the hook.
type actors struct {
	write func(election.Name, record.Actors) error

	mu   sync.Mutex
	rows map[election.Name]record.Actors
}

// newActors starts from what an earlier life recorded.
func newActors(past *record.Past, write func(election.Name, record.Actors) error) *actors {
	a := &actors{write: write, rows: map[election.Name]record.Actors{}}
	if past != nil {
		maps.Copy(a.rows, past.Actors)
	}
	return a
}

func (a *actors) program(name election.Name, p record.Program) {
	a.change(name, func(row *record.Actors) { row.Program = p })
}

// hook records a run for a leadership, before the run starts and when it has finished.
func (a *actors) hook(name election.Name, term election.Term, finished bool) {
	a.change(name, func(row *record.Actors) {
		if term >= row.Hook.Term {
			row.Hook = record.Hook{Term: term, Finished: finished}
		}
	})
}

// change writes one row. A write that fails ends the lineage; the record's owner reports that.
func (a *actors) change(name election.Name, f func(*record.Actors)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.rows) > maxAnnounced {
		maps.DeleteFunc(a.rows, func(_ election.Name, row record.Actors) bool {
			return row.Program.Told <= row.Program.Stopped && (row.Hook.Finished || row.Hook.Term == 0)
		})
	}
	row := a.rows[name]
	f(&row)
	a.rows[name] = row
	_ = a.write(name, row)
}

// ledBefore returns the rows of an earlier life that the registry goes on from, without the
// roster's election, which no life goes on leading (K8). The term is 0 where the elector does
// not lead on, since the leadership began under the other setting of --quorum.
func ledBefore(past *record.Past, quorum bool) []campaign.Past {
	if past == nil {
		return nil
	}
	var all []campaign.Past
	for _, row := range past.Rows {
		if row.Ending.Reason == "" && (row.Until == election.Never) == quorum {
			row.Term = 0
		}
		if row.Election != election.RosterElection {
			all = append(all, campaign.Past{Authority: row, Program: past.Actors[row.Election].Program})
		}
	}
	return all
}

// proveAbsent waits for the end of programs that an earlier life elected and that have not
// resumed yet.
func (l *loop) proveAbsent() {
	programs, until := l.campaigns.Absent()
	if len(programs) == 0 {
		return
	}
	go func() { // asking the kernel about a thousand programs would delay the first heartbeat
		for i, p := range programs {
			if p.Sockets[0] == 0 {
				continue // no socket of it is on record, so its end would prove nothing
			}
			process, err := proof.Recorded(p)
			if err != nil {
				l.logger.Info("a program that led can't be proven to have ended: if it does not resume, its successor waits for the end of the lease", "campaign", p.Campaign, "err", err)
				continue
			}
			go l.proveEnd(p.Campaign, process, until[i])
		}
	}()
}

func (l *loop) proveEnd(id string, process *proof.Process, until election.Instant) {
	defer process.Close()
	deadline := time.NewTimer(until.Sub(l.clock()))
	defer deadline.Stop()
	select {
	case <-process.Gone():
	case <-deadline.C:
		return
	case <-l.done:
		return
	}
	if process.Alone() {
		l.logger.Info("the program that led has exited", "campaign", id)
		l.call(func(election.Instant) { l.campaigns.Dead(id) })
	}
}

// announceStart runs the hooks for "no leader" in elections that this life does not lead on.
// The former life may have been killed while it led, and then no hook has run for the end of
// that leadership.
func (l *loop) announceStart() {
	names, held := append(l.hooks.Named(), election.Default), map[election.Name]bool{}
	if l.past != nil {
		for _, row := range l.past.Rows {
			switch ran := l.past.Actors[row.Election].Hook; {
			case row.Term != 0 && row.Ending.Reason != "": // the elector announces the end in its first step
				held[row.Election] = true
			case row.Term != 0 && l.leads(row.Election, row.Term):
				held[row.Election] = true
				l.resumeHook(row, ran)
			case ran.Term != 0:
				names = append(names, row.Election)
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if l.hooks.Covers(name) && !held[name] {
			l.announced[name] = announced{event: election.NoLeader}
			l.hooks.Enqueue(hook.Event{Election: name, Event: election.NoLeader, Change: l.nobody(name, 0, "the agent starts")})
		}
	}
}

// resumeHook runs the hook of an election that this life leads on, unless the hook has
// finished. If a run of this term ended with the former life, no other run may get the same
// term: the agent takes a higher term first (K4d).
func (l *loop) resumeHook(row election.Authority, ran record.Hook) {
	switch {
	case !l.hooks.Covers(row.Election):
	case ran.Term < row.Term:
		l.tellHook(election.Announcement{Event: election.Leading, Election: row.Election, Leader: l.self, Term: row.Term}, api.Change{
			Time: time.Now().UTC(), Type: api.ChangeLeader, Election: string(row.Election), Term: uint64(row.Term),
			Leader: l.picture.Load().Leader(l.self.Peer), IsLeader: true, Reason: "the agent was started again", BoottimeNS: int64(l.clock())})
	case ran.Finished:
		l.remember(row.Election, announced{election.Leading, row.Term})
	default:
		l.queue = append(l.queue, election.Overtake{Election: row.Election})
	}
}
