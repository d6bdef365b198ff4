package loop

import (
	"sync"

	"github.com/doyen-election/doyen/election"
)

// leaders counts how often another agent became the leader of an election. The zero value is
// ready to use, by any goroutine.
type leaders struct {
	mu sync.Mutex
	of map[string]succession
}

type succession struct {
	last    string // peer ID
	changes int
}

const maxFollowed = 2 * election.MaxElections

// follow counts a leader. If it keeps too many elections, most of which no longer exist, it resets
// all counts.
func (l *leaders) follow(name, leader string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of[name]
	if s.last != "" && s.last != leader {
		s.changes++
	}
	if s.last == "" && len(l.of) >= maxFollowed || l.of == nil {
		l.of = map[string]succession{}
	}
	s.last = leader
	l.of[name] = s
}

func (l *leaders) Changes(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[name].changes
}
