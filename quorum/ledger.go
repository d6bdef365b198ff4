package quorum

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Ledger holds the durable state in memory and orders its writes: at most one
// is under way, and all changes made meanwhile share the next one, so that the
// grants of many elections cost one fsync.
//
// It is also the outbox of what rests on those writes: a message leaves once its
// generation is durable.
//
// Invariant: durable ≤ generation and urgent ≤ generation; while a write is
// under way, durable ≤ writing ≤ generation.
type Ledger struct {
	state      election.State
	generation uint64           // counts changes
	urgent     uint64           // the newest change somebody waits for
	durable    uint64           // the newest change known to be on disk
	writing    uint64           // the newest change in the write under way; 0: none
	writes     uint64           // numbers the writes
	kept       uint64           // State.Writes of the newest write known to be on disk
	tried      election.Instant // when the last write began
	waits      election.Instant // when the first write after the last one that succeeded began; Never: there is none
	failing    bool
	barred     bool // nothing is written any more
	retryAt    election.Instant
	retry      time.Duration
	unsent     []unsent
}

// unsent is a message that leaves once its generation is durable; 0: now.
type unsent struct {
	generation uint64
	election.Envelope
}

// NewLedger returns a ledger of a state that is on disk. A failed write is
// tried again after retry.
func NewLedger(s election.State, retry time.Duration) *Ledger {
	s = s.Clone()
	if s.Grants == nil {
		s.Grants = map[election.Name]election.Grant{}
	}
	if s.Seen == nil {
		s.Seen = map[election.Name]election.Term{}
	}
	return &Ledger{state: s, retry: retry, waits: election.Never, kept: s.Writes}
}

// Bar ends the writing for good. What rests on it is never sent.
func (l *Ledger) Bar() { l.barred, l.unsent = true, nil }

// WhenDurable sends the message once that generation is on disk.
func (l *Ledger) WhenDurable(generation uint64, e election.Envelope) {
	if !l.barred {
		l.unsent = append(l.unsent, unsent{generation: generation, Envelope: e})
	}
}

// Send sends a message that rests on no write.
func (l *Ledger) Send(e election.Envelope) { l.unsent = append(l.unsent, unsent{Envelope: e}) }

// Cancel drops the unsent messages that match.
func (l *Ledger) Cancel(matches func(election.Envelope) bool) {
	l.unsent = slices.DeleteFunc(l.unsent, func(u unsent) bool { return matches(u.Envelope) })
}

// Take returns what may leave now, in the order in which it was given.
func (l *Ledger) Take() []election.Envelope {
	var out []election.Envelope
	l.unsent = slices.DeleteFunc(l.unsent, func(u unsent) bool {
		durable := l.Durable(u.generation)
		if durable {
			out = append(out, u.Envelope)
		}
		return durable
	})
	return out
}

// Flush makes what nobody waited for due to be written too: a release that is
// on disk spares the next life the hold of V5.
func (l *Ledger) Flush() { l.urgent = l.generation }

// State returns the state in memory, part of which may not be durable yet. It
// is for reading only.
func (l *Ledger) State() *election.State { return &l.state }

// Change applies a change that somebody waits for, and returns its generation.
func (l *Ledger) Change(change func(*election.State)) uint64 {
	l.urgent = l.Note(change)
	return l.urgent
}

// Note applies a change that nobody waits for: it goes with the next write.
func (l *Ledger) Note(change func(*election.State)) uint64 {
	change(&l.state)
	l.generation++
	return l.generation
}

// NextWrite has something written, if nothing is due, and returns the generation
// that is durable with the next write that succeeds.
func (l *Ledger) NextWrite() uint64 {
	if l.Settled() {
		l.Change(func(*election.State) {})
	}
	return l.durable + 1
}

// Durable reports whether the change of that generation is on disk.
func (l *Ledger) Durable(generation uint64) bool { return generation <= l.durable }

// Writes is how many writes of the state are on disk, those of former lives
// included. One that failed counts only once a later one has not.
func (l *Ledger) Writes() uint64 { return l.kept }

// Settled reports whether no change that somebody waits for is missing on disk.
func (l *Ledger) Settled() bool { return l.urgent <= l.durable }

// Failing reports whether the last write failed.
func (l *Ledger) Failing() bool { return l.failing }

// WaitsSince is since when the disk has not taken what it was given, Never if it
// was given nothing since it last did.
func (l *Ledger) WaitsSince() election.Instant { return l.waits }

// TriedAt is when the last write began.
func (l *Ledger) TriedAt() election.Instant { return l.tried }

// Next returns the write to start now, nil if none is due.
func (l *Ledger) Next(now election.Instant) *election.Persist {
	if l.barred || l.Settled() || l.writing != 0 || (l.failing && now < l.retryAt) {
		return nil
	}
	l.writes++
	l.state.Writes++
	l.writing, l.tried, l.waits = l.generation, now, min(l.waits, now)
	return &election.Persist{Write: l.writes, State: l.state.Clone()}
}

// Persisted takes note that the write is on disk. It reports false for a write
// that is not the one under way.
func (l *Ledger) Persisted(write uint64) bool {
	if l.writing == 0 || write != l.writes {
		return false
	}
	l.durable, l.writing, l.failing, l.waits = l.writing, 0, false, election.Never
	l.kept = l.state.Writes // it rises only when the next write begins
	return true
}

// Failed takes note that the write may or may not be on disk. It will be tried
// again, with everything that changed since.
func (l *Ledger) Failed(write uint64, now election.Instant) {
	if l.writing == 0 || write != l.writes {
		return
	}
	l.writing, l.failing, l.retryAt = 0, true, now.Add(l.retry)
}

// WakeAt is when a failed write is tried again, Never if none failed.
func (l *Ledger) WakeAt() election.Instant {
	if l.failing && !l.barred && l.writing == 0 && !l.Settled() {
		return l.retryAt
	}
	return election.Never
}
