package quorum

import (
	"maps"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Ledger holds the durable state in memory, orders its writes, and keeps each message until the
// write that it depends on is durable.
//
// Invariant: durable, urgent and writing ≤ generation; during a write, durable ≤ writing.
type Ledger struct {
	state      election.State
	words      map[election.Name]election.Word
	altered    map[election.Name]uint64 // election → the generation of its word, until that is durable
	stateAt    uint64                   // the newest change of the state itself
	generation uint64                   // counts changes
	urgent     uint64                   // the newest change that makes a write due
	durable    uint64                   // the newest change on disk
	writing    uint64                   // the newest change in the write that is in progress; 0: none is
	writes     uint64                   // the number of the newest write, in this process run
	written    uint64                   // State.Writes in the newest write that is on disk
	tried      election.Instant         // when the last write started
	waits      election.Instant         // see WaitsSince
	failing    bool
	barred     bool // the ledger writes nothing any more
	retryAt    election.Instant
	retry      time.Duration
	unsent     []unsent
}

type unsent struct {
	generation uint64
	election.Envelope
}

// NewLedger returns a ledger of a state that is on disk. If the state's words are Unsynced, they are written
// again. retry is the delay before a failed write is repeated.
func NewLedger(s election.State, retry time.Duration) *Ledger {
	s.Grants = maps.Collect(maps.All(s.Grants)) // copies, and never nil
	s.Seen = maps.Collect(maps.All(s.Seen))
	words := maps.Collect(maps.All(s.Words))
	l := &Ledger{state: s, words: words, altered: map[election.Name]uint64{}, retry: retry, waits: election.Never, written: s.Writes}
	l.state.Words, l.state.Unsynced = nil, false
	if s.Unsynced {
		l.generation, l.urgent = 1, 1
		for e := range words {
			l.altered[e] = 1
		}
	}
	return l
}

// Bar ends all writing until the next start. Unsent messages never leave.
func (l *Ledger) Bar() { l.barred, l.unsent = true, nil }

func (l *Ledger) WhenDurable(generation uint64, e election.Envelope) {
	if !l.barred {
		l.unsent = append(l.unsent, unsent{generation: generation, Envelope: e})
	}
}

func (l *Ledger) Send(e election.Envelope) { l.unsent = append(l.unsent, unsent{Envelope: e}) }

func (l *Ledger) Cancel(matches func(election.Envelope) bool) {
	l.unsent = slices.DeleteFunc(l.unsent, func(u unsent) bool { return matches(u.Envelope) })
}

// Take returns the messages that may leave now, in the order in which they were given.
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

// Flush makes a write due if any change is not on disk. Once a release is on disk, the next process run needs no hold (V5).
func (l *Ledger) Flush() { l.urgent = l.generation }

// State is the state in memory, which may not be durable yet. Callers must not change it.
func (l *Ledger) State() *election.State { return &l.state }

// Change applies a change that must be written, and returns its generation.
func (l *Ledger) Change(change func(*election.State)) uint64 {
	l.urgent = l.Note(change)
	return l.urgent
}

// Note applies a change that is written only when another change must be written.
func (l *Ledger) Note(change func(*election.State)) uint64 {
	change(&l.state)
	l.generation++
	l.stateAt = l.generation
	return l.generation
}

// Word is the election's word in memory, which may not be durable yet; zero: it has none.
func (l *Ledger) Word(e election.Name) election.Word { return l.words[e] }

// Words are all words in memory, sorted by election.
func (l *Ledger) Words() []election.NamedWord { return sortedWords(l.words) }

// DropWords drops all words. It is called from within a change of the state, and is part of it.
func (l *Ledger) DropWords(s *election.State) {
	s.KeepsWords = false
	clear(l.words)
	clear(l.altered)
}

// DropWord drops the election's word. It is called from within a change of the state, which is on disk
// before the word is removed (W11).
func (l *Ledger) DropWord(s *election.State, e election.Name) {
	delete(l.words, e)
	l.altered[e] = l.generation + 1
	s.KeepsWords = len(l.words) > 0
}

// KeepWord replaces the election's word, which must be written, and returns the generation. The
// first word also changes the state: KeepsWords shows from then on that words are on disk.
func (l *Ledger) KeepWord(e election.Name, w election.Word) uint64 {
	if !l.state.KeepsWords {
		l.Note(func(s *election.State) { s.KeepsWords = true })
	}
	l.generation++
	l.urgent = l.generation
	l.words[e], l.altered[e] = w, l.generation
	return l.generation
}

// NextWrite makes a write due. It returns the generation that becomes durable with the next successful write.
func (l *Ledger) NextWrite() uint64 {
	if l.Settled() {
		l.Change(func(*election.State) {})
	}
	return l.durable + 1
}

func (l *Ledger) Durable(generation uint64) bool { return generation <= l.durable }

// Writes counts the writes on disk, also those from earlier runs of the process. A failed write is counted
// after a later one has succeeded.
func (l *Ledger) Writes() uint64 { return l.written }

// Sure reports whether all counted writes are certainly on disk. Words that a start found unsynced are not.
func (l *Ledger) Sure() bool { return l.durable > 0 || len(l.altered) == 0 }

// Settled reports whether everything that must be written is durable.
func (l *Ledger) Settled() bool { return l.urgent <= l.durable }

func (l *Ledger) Failing() bool { return l.failing }

// WaitsSince is when the first write since the last successful one started; Never: none has started.
func (l *Ledger) WaitsSince() election.Instant { return l.waits }

func (l *Ledger) TriedAt() election.Instant { return l.tried }

// Next returns the write to start now; nil if none is due or possible.
func (l *Ledger) Next(now election.Instant) *election.Persist {
	if l.barred || l.Settled() || l.writing != 0 || (l.failing && now < l.retryAt) {
		return nil
	}
	l.writes++
	l.writing, l.tried, l.waits = l.generation, now, min(l.waits, now)
	l.state.Writes++
	p := &election.Persist{Write: l.writes, Writes: l.state.Writes}
	for _, e := range slices.Sorted(maps.Keys(l.altered)) {
		p.Words = append(p.Words, election.NamedWord{Election: e, Word: l.words[e]})
	}
	if l.stateAt > l.durable || len(p.Words) == 0 {
		state := l.state.Clone()
		p.State = &state
	}
	return p
}

// Persisted records that the write is on disk. It returns false if another write or none is in progress.
func (l *Ledger) Persisted(write uint64) bool {
	if l.writing == 0 || write != l.writes {
		return false
	}
	l.durable, l.writing, l.failing, l.waits = l.writing, 0, false, election.Never
	maps.DeleteFunc(l.altered, func(_ election.Name, generation uint64) bool { return generation <= l.durable })
	l.written = l.state.Writes // the count in memory rises only when the next write starts
	return true
}

// Failed records that the write may not be on disk. The ledger will try again.
func (l *Ledger) Failed(write uint64, now election.Instant) {
	if l.writing != 0 && write == l.writes {
		l.writing, l.failing, l.retryAt = 0, true, now.Add(l.retry)
	}
}

func (l *Ledger) WakeAt() election.Instant {
	if l.failing && !l.barred && l.writing == 0 && !l.Settled() {
		return l.retryAt
	}
	return election.Never
}
