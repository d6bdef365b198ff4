package membership

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// patientBy: an agent that lacks processor time waits patientBy times as long for a suspect, and needs more
	// reports from others before it waits less.
	patientBy = 4
	// patientAfter is how long the agent stays patient after the last sign that it lacked processor time.
	patientAfter = 15 * time.Second
	// crowd is a number of members. An agent that sees so many just after its start assumes that all
	// start at once, and is patient even before it notices that it is late.
	crowd = 16
)

// suspicion decides how much time a suspected member has to show that it is alive. Where a hundred agents
// start at once, all are late, and each declares others dead. After every such verdict all agents exchange
// lists and connect again, which takes even more time. So an agent waits longer if it notices that it is
// late itself, or if memberlist's health score for it is bad: then other agents miss its answers, or it
// misses theirs.
type suspicion struct {
	config *memberlist.Config // of the list that is running
	calm   int                // the multiplier while the agent is not patient
	nodes  int                // to how many members a round of gossip goes in a small cluster
	began  time.Time
	list   atomic.Pointer[memberlist.Memberlist] // nil until the list exists
	until  atomic.Pointer[time.Time]             // until when the agent is patient
}

func newSuspicion(c *memberlist.Config, now time.Time) *suspicion {
	return &suspicion{config: c, calm: c.SuspicionMult, nodes: c.GossipNodes, began: now}
}

// woke makes the agent patient if it ran much later than it should have.
func (s *suspicion) woke(due, now time.Time) {
	if now.Sub(due) >= s.config.ProbeTimeout/2 {
		s.bear(now)
	}
}

// bear makes the agent patient for patientAfter.
func (s *suspicion) bear(now time.Time) {
	until := now.Add(patientAfter)
	s.until.Store(&until)
}

// adapt sets the multiplier for memberlist's next suspicion, and to how many members its next round of
// gossip goes. The caller holds the lock under which memberlist reads both.
func (s *suspicion) adapt(now time.Time, members int64) {
	list := s.list.Load()
	if list != nil { // before that, memberlist reads it without the lock
		s.config.GossipNodes = gossipNodes(s.nodes, members)
	}
	if list != nil && list.GetHealthScore() > 0 || members >= crowd && now.Sub(s.began) < patientAfter {
		s.bear(now)
	}
	mult := s.calm
	if until := s.until.Load(); until != nil && now.Before(*until) {
		mult = max(mult*patientBy, unconfirmed(members))
	}
	s.config.SuspicionMult = mult
}

// few is up to how many members a cluster has no need to save gossip and readings of the list.
const few = 32

// gossipNodes spares processors for handshakes and votes: the more members, the fewer get each round of gossip.
func gossipNodes(most int, members int64) int {
	return max(1, most*few/int(max(few, members)))
}

// unconfirmed returns a multiplier with which memberlist gossips a suspicion only once: if the multiplier is
// above the number of members, memberlist expects no confirmations. With a smaller multiplier, each further
// agent that suspects the member causes another notice to all others, which costs a hundred agents a hundred
// milliseconds each time. Only a crowd needs this.
func unconfirmed(members int64) int {
	if members < crowd {
		return 0
	}
	return int(members + members/4)
}
