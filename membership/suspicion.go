package membership

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// patientBy is how many times as long, and for how many times as many reports of others,
	// an agent waits for a suspect if it is short of processor time itself.
	patientBy = 4
	// patientAfter is how long the agent waits like that after the last sign that it is short.
	patientAfter = 15 * time.Second
	// crowd is from how many members on an agent that has just started assumes that all
	// start at once: it is patient before it can notice that it is late.
	crowd = 16
)

// suspicion is how long a member that does not answer may take to refute that it is
// dead. Where a hundred agents start at once, all are late, and each calls the others
// dead: after every such verdict all of them exchange lists and connect again, so that
// there is even less time. So an agent that finds itself late, or that others miss and
// that misses others (memberlist's score of its own health), waits longer. One without
// such a sign does not.
type suspicion struct {
	config *memberlist.Config // of the list that is running
	calm   int
	began  time.Time
	list   atomic.Pointer[memberlist.Memberlist] // nil: not yet
	until  atomic.Pointer[time.Time]             // patient
}

func newSuspicion(c *memberlist.Config, now time.Time) *suspicion {
	return &suspicion{config: c, calm: c.SuspicionMult, began: now}
}

// woke takes when the agent was to run, and when it did.
func (s *suspicion) woke(due, now time.Time) {
	if now.Sub(due) >= s.config.ProbeTimeout/2 {
		s.bear(now)
	}
}

// bear makes the agent patient.
func (s *suspicion) bear(now time.Time) {
	until := now.Add(patientAfter)
	s.until.Store(&until)
}

// adapt sets what memberlist begins the next suspicion with. It is called under
// memberlist's lock, under which that is read.
func (s *suspicion) adapt(now time.Time, members int64) {
	if list := s.list.Load(); list != nil && list.GetHealthScore() > 0 {
		s.bear(now)
	}
	if members >= crowd && now.Sub(s.began) < patientAfter {
		s.bear(now)
	}
	mult := s.calm
	if until := s.until.Load(); until != nil && now.Before(*until) {
		mult = max(mult*patientBy, unconfirmed(members))
	}
	s.config.SuspicionMult = mult
}

// unconfirmed is the least number with which memberlist gossips a suspicion once only:
// with fewer, each further agent that misses the member too has all others notified
// again, which takes a hundred agents as many milliseconds each time. It is a number of
// confirmations that never come, and for a crowd only.
func unconfirmed(members int64) int {
	if members < crowd {
		return 0
	}
	return int(members + members/4)
}
