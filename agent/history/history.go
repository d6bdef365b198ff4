// Package history keeps the newest changes of leadership that an agent saw. With each new leader it
// keeps for how long nobody was known to lead before.
//
// It guarantees that changes are listed in the order in which they were added, and that a bounded number is
// kept, over all elections together. A full log drops the oldest change, except the newest commands of
// administrators, which have reserved places. The rate of other users' commands is limited, and
// equal commands are one entry. A reader delays Add by no longer than a copy takes.
//
// A history in a file (Keep) outlives the process. A crash of the host may cost the newest changes: writes are
// not synced, since that would delay the writes of votes on the same disk. A damaged file costs the history and
// nothing else. The histories of two agents may differ, since each agent adds what it saw.
package history

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/offer"
	"github.com/doyen-election/doyen/internal/door"
)

const (
	// MaxKept bounds the kept changes of all elections together.
	MaxKept = 10_000
	// MaxActs is how many of these places are reserved for commands of administrators.
	MaxActs = 1000
	// MaxListed bounds how many changes one answer lists.
	MaxListed = 1024
	// maxVacant bounds the elections for which the log keeps since when they have no leader.
	maxVacant = 2048
	// A user who is not an administrator may add commandsEach commands a second, and commandsAtOnce at once.
	commandsEach, commandsAtOnce = 1, 10
	// Equal commands within equalWithin are one entry, if that entry is among the newest equalAmong.
	equalAmong  = 100
	equalWithin = time.Minute
)

// Log is where changes are added and listed, by any goroutine.
type Log struct {
	file file

	mu      sync.Mutex
	unsaved []api.Transition       // not in the file yet; after more than MaxKept, all of kept is written instead
	kept    []api.Transition       // the newest last
	acts    int                    // how many of the kept changes are commands of administrators
	pace    *door.Pace[api.Caller] // bounds the commands, by user and host
	vacant  map[string]vacancy
	earlier map[string]leadership // by election: the one with which earlier runs of the process ended, until this run adds a change
}

// leadership is who leads an election, and in which term.
type leadership struct {
	leader string // its peer ID
	term   uint64
}

// vacancy is a time without a leader: when it began, and when a leader was last heard, in CLOCK_BOOTTIME nanoseconds.
type vacancy struct{ since, heard int64 }

// New returns an empty log. It counts the named elections as led by nobody since the instant
// now, in nanoseconds of CLOCK_BOOTTIME.
func New(now int64, elections ...string) *Log {
	l := &Log{vacant: map[string]vacancy{}, earlier: map[string]leadership{}, pace: door.NewPace[api.Caller](commandsEach, commandsAtOnce), file: file{wake: make(chan struct{}, 1)}}
	for _, e := range elections {
		l.vacant[e] = vacancy{now, now}
	}
	return l
}

// Add adds the newest change. If it shows a new leader, Add fills in how long ago the former
// leader was last heard, and for how long nobody was known to lead.
func (l *Log) Add(t api.Transition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := t.BoottimeNS
	if t.HeardBoottimeNS != 0 {
		heard = min(heard, t.HeardBoottimeNS)
	}
	v, vacant := l.vacant[t.Election]
	switch {
	case t.Type == api.ChangeCommand, t.Election == "":
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
	l.save(t)
}

// Enter adds a command, and returns whether the log has a new entry. An equal command by the same user only raises
// the count of the earlier entry. Too many commands by a user who is not an administrator are dropped.
func (l *Log) Enter(t api.Transition) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.kept) - 1; i >= max(0, len(l.kept)-equalAmong); i-- {
		k := &l.kept[i]
		if k.By != nil && user(*k) == user(t) && k.Election == t.Election && k.Term == t.Term && k.Reason == t.Reason && t.Time.Sub(k.Time) < equalWithin {
			k.Count = max(k.Count, 1) + 1
			return false
		}
	}
	if !t.Admin && !l.pace.Take(election.Instant(t.BoottimeNS), user(t), 1) {
		return false
	}
	l.save(t)
	return true
}

// user identifies the user that gives a command: all processes of a user count as one.
func user(t api.Transition) api.Caller {
	return api.Caller{UID: t.By.UID, User: t.By.User, Host: t.By.Host}
}

func (l *Log) save(t api.Transition) {
	l.push(t)
	if len(l.unsaved) <= MaxKept {
		l.unsaved = append(l.unsaved, t)
	}
	offer.To(l.file.wake, struct{}{}) // if the element is there already, the write that it causes includes this change
}

// changes reports whether an entry shows who leads, or that nobody leads.
func changes(t api.Transition) bool {
	return t.Type != api.ChangeCommand && (t.Type != api.ChangeRestarted || t.Leader != nil)
}

// HeardAgain reports whether the earlier runs of the process ended with this leader in this term, and
// this run has added no change of the election. Then nobody was newly elected: this run
// has only now heard of the leader. HeardAgain then counts the election as led.
func (l *Log) HeardAgain(election, leader string, term uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.earlier[election] != (leadership{leader, term}) {
		return false
	}
	delete(l.vacant, election)
	delete(l.earlier, election)
	return true
}

// push adds an entry. A command is added when its outcome is known, and is placed before the
// changes that it has caused until then.
func (l *Log) push(t api.Transition) {
	i := len(l.kept)
	for t.Type == api.ChangeCommand && i > 0 && l.kept[i-1].BoottimeNS > t.BoottimeNS && l.kept[i-1].Time.After(t.Time) {
		i--
	}
	l.kept = slices.Insert(l.kept, i, t)
	if t.Admin {
		l.acts++
	}
	if len(l.kept) <= MaxKept {
		return
	}
	gone := 0
	if l.acts <= MaxActs {
		gone = slices.IndexFunc(l.kept, func(t api.Transition) bool { return !t.Admin })
	}
	if l.kept[gone].Admin {
		l.acts--
	}
	copy(l.kept[1:], l.kept[:gone]) // cheap, since few entries are before the one that is dropped
	l.kept = l.kept[1:]
}

// vacate records since when nobody leads an election. If the log is full, it forgets the election
// that has had no leader for longest: that election may never get a leader again.
func (l *Log) vacate(name string, now vacancy) {
	if len(l.vacant) >= maxVacant {
		delete(l.vacant, slices.MinFunc(slices.Collect(maps.Keys(l.vacant)), func(a, b string) int {
			return cmp.Or(cmp.Compare(l.vacant[a].since, l.vacant[b].since), cmp.Compare(a, b))
		}))
	}
	l.vacant[name] = now
}

// List returns the newest changes of the election, at most limit, the newest last. With an empty name it
// returns those of all elections. The agent's starts and pauses are listed for each election.
// The result is never nil.
func (l *Log) List(election string, limit int) []api.Transition {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := []api.Transition{}
	for _, t := range slices.Backward(l.kept) {
		if len(found) == limit {
			break
		}
		if election == "" || t.Election == election || t.Type == api.ChangeStarted || t.Type == api.ChangePaused {
			found = append(found, t)
		}
	}
	slices.Reverse(found)
	return found
}
