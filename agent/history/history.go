// Package history keeps the newest changes of leadership that an agent saw, and for
// how long nobody was known to lead before each new leader.
//
// It guarantees that changes are listed in the order in which they were added, and that a
// bounded number is kept, over all elections together: when it is full, the oldest goes. A
// reader delays Add by no longer than a copy takes.
//
// Kept in a file (Keep), it outlives the process, and a crash of the host but for its newest
// changes: they are not synced, since that would compete with the votes for the disk. A file that
// is damaged costs the history and nothing else. Agents may have seen different changes.
package history

import (
	"math"
	"slices"
	"sync"

	"github.com/doyen-election/doyen/api"
)

const (
	// MaxKept bounds the changes kept over all elections.
	MaxKept = 10_000
	// MaxListed bounds the changes in one answer.
	MaxListed = 1024
	// maxVacant bounds for how many elections it is kept since when nobody leads.
	maxVacant = 2048
)

// Log is where changes are added and listed, by any goroutine.
type Log struct {
	file file

	mu      sync.Mutex
	unsaved int              // of the newest changes, how many the file does not have
	kept    []api.Transition // the newest last
	vacant  map[string]vacancy
	earlier map[string]leadership // by election, until this process run adds a change of it
}

// leadership is the last one that the earlier process runs knew of an election.
type leadership struct {
	leader string // peer ID
	term   uint64
}

// vacancy is since when nobody leads, in CLOCK_BOOTTIME nanoseconds.
type vacancy struct{ since, heard int64 }

// New returns a log that holds nothing. The named elections count as led by
// nobody since the instant, in nanoseconds of CLOCK_BOOTTIME.
func New(now int64, elections ...string) *Log {
	l := &Log{vacant: map[string]vacancy{}, earlier: map[string]leadership{}, file: file{wake: make(chan struct{}, 1)}}
	for _, e := range elections {
		l.vacant[e] = vacancy{now, now}
	}
	return l
}

// Add adds the newest change, and fills in its gap: since the former leader was last heard,
// and since nobody was known to lead.
func (l *Log) Add(t api.Transition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := t.BoottimeNS
	if t.HeardBoottimeNS != 0 {
		heard = min(heard, t.HeardBoottimeNS)
	}
	v, vacant := l.vacant[t.Election]
	switch {
	case t.Type == api.ChangeCommand:
	case t.Leader != nil:
		if !vacant {
			v = vacancy{t.BoottimeNS, heard}
		}
		if t.Type != api.ChangeRestarted {
			t.VacantMS, t.GapMS = max(0, (t.BoottimeNS-v.since)/1e6), max(0, (t.BoottimeNS-v.heard)/1e6)
		}
		delete(l.vacant, t.Election)
	case !vacant:
		l.vacate(t.Election, vacancy{t.BoottimeNS, heard})
	}
	if changes(t) {
		delete(l.earlier, t.Election)
	}
	l.push(t)
	l.unsaved++
	select {
	case l.file.wake <- struct{}{}:
	default: // it will be written with what waits
	}
}

// changes reports whether an entry shows who leads, or that nobody does.
func changes(t api.Transition) bool {
	return t.Type != api.ChangeCommand && (t.Type != api.ChangeRestarted || t.Leader != nil)
}

// HeardAgain reports whether the earlier process runs ended with this leader in this term, and
// this run has added no other change of the election. Then nobody was elected: this process only
// did not know the leader yet. The election counts as led from now on.
func (l *Log) HeardAgain(election, leader string, term uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, ok := l.earlier[election]
	if !ok || was != (leadership{leader, term}) {
		return false
	}
	delete(l.vacant, election)
	delete(l.earlier, election)
	return true
}

func (l *Log) push(t api.Transition) {
	if l.kept = append(l.kept, t); len(l.kept) > MaxKept {
		l.kept = l.kept[1:]
	}
}

// vacate starts to measure how long nobody leads. If there is no room, it forgets the election
// that has been vacant longest: many elections never have a leader again.
func (l *Log) vacate(name string, now vacancy) {
	if len(l.vacant) >= maxVacant {
		oldest, since := "", int64(math.MaxInt64)
		for e, at := range l.vacant {
			if at.since < since || at.since == since && e < oldest {
				oldest, since = e, at.since
			}
		}
		delete(l.vacant, oldest)
	}
	l.vacant[name] = now
}

// List returns the newest changes, at most limit, the newest last: those of the election, or
// of all elections if the name is empty. The result is never nil.
func (l *Log) List(election string, limit int) []api.Transition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest(election, limit)
}

func (l *Log) newest(election string, limit int) []api.Transition {
	found := []api.Transition{}
	for _, t := range slices.Backward(l.kept) {
		if len(found) == limit {
			break
		}
		if election == "" || t.Election == election {
			found = append(found, t)
		}
	}
	slices.Reverse(found)
	return found
}
