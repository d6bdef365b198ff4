package loop

import (
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/history"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// leaders counts how often another agent became the leader of an election, and for how long no leader of it was
// known. The zero value is ready to use, by any goroutine.
type leaders struct {
	mu      sync.Mutex
	of      map[string]succession
	shown   *serve.Picture   // nil: none yet
	counted election.Instant // the instant up to which time without a leader is counted
	due     election.Instant // when the loop wakes up
}

type succession struct {
	last    string // peer ID
	changes int
	vacant  time.Duration
}

const (
	maxFollowed = 2 * election.MaxElections
	// If the loop wakes up more than pausedAfter late, the agent counts as not running in that time.
	pausedAfter = 10 * time.Second
)

// follow records the present leader, and counts a change if the last one was another agent.
func (l *leaders) follow(name, leader string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of[name]
	if s.last != "" && s.last != leader {
		s.changes++
	}
	s.last = leader
	l.keep(name, s)
}

// keep keeps the counts of an election. If it keeps too many elections, most of which no longer exist, it resets
// all counts.
func (l *leaders) keep(name string, s succession) {
	if _, known := l.of[name]; l.of == nil || !known && len(l.of) >= maxFollowed {
		l.of = map[string]succession{}
	}
	l.of[name] = s
}

// show counts the time without a leader until now, by the old picture. From now on the next picture counts.
func (l *leaders) show(now election.Instant, next *serve.Picture) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(now)
	l.shown = next
}

// count counts the time without a leader until now. Time in which the agent did not run is not counted.
func (l *leaders) count(now election.Instant) {
	until := now
	if now.Sub(l.due) > pausedAfter {
		until = l.due
	}
	if l.shown != nil && until > l.counted {
		for name, led := range l.shown.LedUntil {
			if d := until.Sub(max(led, l.counted)); d > 0 {
				s := l.of[string(name)]
				s.vacant += d
				l.keep(string(name), s)
			}
		}
	}
	l.counted = max(l.counted, now)
}

// wake records when the loop is due to wake up.
func (l *leaders) wake(due election.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = due
}

// Count returns how often another agent became the leader of the election, and for how long until now no leader
// was known.
func (l *leaders) Count(now election.Instant, name string) (changes int, vacant time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(now)
	s := l.of[name]
	return s.changes, s.vacant
}

// notePause adds a pause to the history if the loop wakes up long after it was due. It adds each pause once.
func (l *lateness) notePause(h *history.Log, now election.Instant) {
	if late := now.Sub(l.due); late > pausedAfter && l.noted != l.due {
		l.noted = l.due
		h.Add(api.Transition{Time: time.Now().UTC(), Type: api.ChangePaused, Reason: "this agent did not run for " + short(late),
			DownMS: late.Milliseconds(), BoottimeNS: int64(now)})
	}
}
