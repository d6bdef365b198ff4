package membership

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// patientBy: an agent that is short of processor time waits patientBy times as long for a
	// suspect, and needs patientBy times as many reports of others to wait less.
	patientBy = 4
	// patientAfter is how long the agent stays patient after the last sign of that shortage.
	patientAfter = 15 * time.Second
	// crowd is a number of members. If an agent that has just started sees as many, it
	// assumes that all start at once, and is patient even before it notices that it is late.
	crowd = 16
)

// suspicion decides how long a member that does not answer has to show that it is alive.
// Where a hundred agents start at once, all are late, and each calls others dead. After
// every such verdict all agents exchange lists and connect again, which takes even more
// time. So an agent waits longer if it finds itself late, or if memberlist's score of its
// own health is bad: others miss it, and it misses others.
type suspicion struct {
	config *memberlist.Config // of the list that is running
	calm   int                // the multiplier of an agent that is not patient
	began  time.Time
	list   atomic.Pointer[memberlist.Memberlist] // nil: not yet
	until  atomic.Pointer[time.Time]             // until when the agent is patient
}

func newSuspicion(c *memberlist.Config, now time.Time) *suspicion {
	return &suspicion{config: c, calm: c.SuspicionMult, began: now}
}

// woke takes when the agent should have run, and when it did.
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

// adapt sets the multiplier for memberlist's next suspicion. It is called under memberlist's
// lock, under which memberlist also reads the multiplier.
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

// unconfirmed is the least multiplier with which memberlist gossips a suspicion only once: it
// expects no confirmations if it has too few members for them. With a smaller one, each further
// agent that misses the member has all others notified again, which takes a hundred agents a
// hundred milliseconds each time. Only a crowd needs it.
func unconfirmed(members int64) int {
	if members < crowd {
		return 0
	}
	return int(members + members/4)
}
