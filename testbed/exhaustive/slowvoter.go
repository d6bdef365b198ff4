package exhaustive

import (
	"fmt"
	"time"

	"github.com/doyen-election/doyen/testbed/messages"
)

// slowAt is the voter whose writes take time (W2). It receives messages while it writes. A crash loses what it
// has only in memory. One such voter is enough: its crash loses any word that it has acknowledged too early.
const slowAt = 2

// slowVoter is a voter, what it has received since it last wrote, and whether it has written that.
type slowVoter struct {
	voter   uint16
	queue   [2]uint16
	written bool
}

// waits lets the slow voter receive a message: it answers what needs no write, and begins to write the rest.
func (w *wordWorld) waits(s wordState, message uint16, f func(stepTo[wordState])) {
	free := 0
	for free < len(s.queue) && s.queue[free] != 0 {
		free++
	}
	if free == len(s.queue) || free > 0 && s.queue[0] == message+1 {
		return
	}
	s.queue[free] = message + 1
	r := w.slowly(slowVoter{s.voters[slowAt], s.queue, false})
	if s.voters[slowAt] = r.voter; !r.writes {
		s.queue = [2]uint16{}
	}
	w.answers(s, slowAt, r.answers, true, func() string {
		return fmt.Sprintf("%s receives %s, and is writing: %t", peerOf(slowAt), messages.Describe(w.sent[message]), r.writes)
	}, f)
}

// writes ends the slow voter's write: all of it is on disk, or the voter has crashed before.
func (w *wordWorld) writes(s wordState, f func(stepTo[wordState])) {
	r := w.slowly(slowVoter{s.voters[slowAt], s.queue, true})
	s.queue = [2]uint16{}
	f(stepTo[wordState]{next: s, what: func() string { return fmt.Sprintf("%s crashes before it has written", peerOf(slowAt)) }})
	s.voters[slowAt] = r.voter
	w.answers(s, slowAt, r.answers, true, func() string { return fmt.Sprintf("%s has written", peerOf(slowAt)) }, f)
}

// slowly plays what the slow voter has received since it last wrote, and remembers the reaction.
func (w *wordWorld) slowly(key slowVoter) reaction {
	if r, known := w.slow[key]; known {
		return r
	}
	p, now := w.process(slowAt, w.voters[key.voter]), epoch.Add(time.Hour)
	write := p.ledger.Next(now)
	for _, m := range key.queue {
		if m != 0 {
			p.ledger.Take() // those answers were given before
			handle(p.voter, holderOf(w.sent[m-1]).Peer, w.sent[m-1], now, false)
			p.voter.Settle(now)
		}
		if write == nil {
			write = p.ledger.Next(now)
		}
	}
	r := reaction{voter: key.voter, writes: write != nil}
	switch {
	case key.written:
		p.ledger.Take()
		p.ledger.Persisted(write.Write)
		r.voter = w.voter(settled(p.voter, p.ledger, now))
	case write == nil:
		r.voter = w.voter(settled(p.voter, p.ledger, now))
	}
	r.answers = w.given(p.ledger)
	w.slow[key] = r
	return r
}
