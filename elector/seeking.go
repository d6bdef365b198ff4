package elector

import (
	"time"

	"github.com/doyen-election/doyen/election"
)

const (
	// crowd is how many members make it a matter of who starts the first round.
	crowd = 16
	// crowdStagger is how many times as long as else each waits for the next better
	// one then.
	crowdStagger = 4
)

// FirstTurn is when this agent may start a round for the first leader that it hears
// of, in a crowd. All have just begun, on machines that are busy with that, and are
// not connected to each other yet: each would take itself for one of the best, and
// rounds of a hundred keep all too busy to vote. So the better ones among all members
// count, connected or not, from when enough voters have reported.
func (c *entry) FirstTurn(own election.Rank) election.Instant {
	e := c.e
	if e.settled || !e.cfg.Quorum || len(e.view.Members) < crowd {
		return 0
	}
	if e.informedAt == 0 {
		e.informedAt = e.now
	}
	better := 0
	for _, m := range e.view.Members {
		if r, is := e.rank(m, c.Name()); is && r.Priority > 0 && r.Above(own) {
			better++
		}
	}
	return e.informedAt.Add(time.Duration(better*crowdStagger) * e.rules.Stagger())
}

// selectionMessage hands a message of Bully or Ring to the algorithm in use.
func (e *Elector) selectionMessage(from election.PeerID, m election.Message) {
	name, ok := selectionOf(m, e.cfg.Algorithm)
	if !ok {
		e.counters.Dropped["other_algorithm"]++
		return
	}
	c := e.contest(name)
	if c == nil {
		return
	}
	e.carry(c, c.Receive(c, from, m))
}

// selectionOf returns the election a selection message is about, and whether
// it belongs to the algorithm in use.
func selectionOf(m election.Message, a Algorithm) (election.Name, bool) {
	switch m := m.(type) {
	case election.BullyElection:
		return m.Election, a == Bully
	case election.BullyAnswer:
		return m.Election, a == Bully
	case election.BullyDecline:
		return m.Election, a == Bully
	case election.BullyCoordinator:
		return m.Election, a == Bully
	case election.RingElection:
		return m.Election, a == Ring
	case election.RingAck:
		return m.Election, a == Ring
	case election.RingElected:
		return m.Election, a == Ring
	}
	return "", false
}
