package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
	"github.com/doyen-election/doyen/testbed/messages"
)

// maxHeld bounds the messages that a silently cut link holds back, as TCP would.
const maxHeld = 64

type flight struct {
	to    *agent
	from  *agent
	as    election.PeerID // the sender's identity when it sent; it may lose its disk meanwhile
	epoch int             // of the sender's clock when it sent
	life  uint32          // of the receiver, when the message was sent
	conn  uint32          // generation of the connection it was sent on
	msg   election.Message
	arrow int // its arrow in the history
}

type link struct {
	rng    *rand.Rand
	cuts   int   // cuts under way
	lastAt int64 // when the newest message arrives: links keep the order, except in bursts
	held   []flight
}

// burst is how badly the network behaves now, on all links.
type burst struct {
	loss, repeat, reorder float64
	slow                  time.Duration // mean of the delay that is added to every message
}

func (b burst) String() string {
	return fmt.Sprintf("loses %.0f %%, repeats %.0f %%, reorders %.0f %%, %v slower", 100*b.loss, 100*b.repeat, 100*b.reorder, b.slow)
}

func (w *world) send(a *agent, m election.Envelope) {
	b := w.find(m.To)
	if b == nil && w.former[m.To] {
		w.stats.Lost++
		return
	}
	if b == nil || b == a {
		w.fail("send", "%s sends %s to %q", a.peer, messages.Describe(m.Message), m.To)
		return
	}
	w.stats.Messages++
	c := w.conns[a.id][b.id]
	end := &c.ends[w.side(a, b)]
	l := &w.links[a.id][b.id]
	e := flight{to: b, from: a, as: a.peer, epoch: a.clock.epoch, life: end.life, conn: end.gen, msg: m.Message, arrow: w.sending(a, b, m.Message)}
	if l.rng.IntN(64) == 0 {
		w.checkWire(a, m.Message)
	}
	switch {
	case !end.told, chance(l.rng, max(w.plan.loss, w.burst.loss)):
		w.lost(e)
		return
	case l.cuts > 0:
		if len(l.held) < maxHeld && chance(l.rng, 0.5) {
			l.held = append(l.held, e)
			return
		}
		w.lost(e)
		return
	}
	w.transmit(l, e)
	if chance(l.rng, max(w.plan.repeat, w.burst.repeat)) {
		at := w.Now + int64(around(l.rng, 20*w.plan.delay+w.burst.slow))
		e.arrow = w.repeating(e.arrow)
		w.Push(at, event{flight: e})
	}
}

func (w *world) lost(e flight) {
	w.stats.Lost++
	w.arriving(e, true)
}

// transmit lets the message arrive after earlier ones, as a stream does. A reordered message
// arrives at any time later.
func (w *world) transmit(l *link, e flight) {
	at := w.Now + int64(w.plan.delay/2+around(l.rng, w.plan.delay/2)) + 1
	if chance(l.rng, max(w.plan.reorder, w.burst.reorder)) {
		w.Push(at+int64(around(l.rng, 20*w.plan.delay+w.burst.slow)), event{flight: e})
		return
	}
	if w.burst.slow > 0 {
		at += int64(around(l.rng, w.burst.slow))
	}
	l.lastAt = max(at, l.lastAt+1)
	w.Push(l.lastAt, event{flight: e})
}

// arrive hands over a message. A message of an old connection is usually lost; one to a former
// process always is.
func (w *world) arrive(e flight) {
	if !e.to.alive || e.to.life != e.life {
		w.lost(e)
		return
	}
	c := w.conns[e.to.id][e.from.id]
	end := c.ends[w.side(e.to, e.from)]
	switch {
	case end.told && end.gen == e.conn:
	case end.pending && c.gen == e.conn: // the stream exists, and is read soon
		w.Push(max(w.Now, end.tellAt)+1, event{flight: e})
		return
	case e.epoch != e.from.clock.epoch && end.told: // the sender's host was down since: that stream is closed
		w.lost(e)
		return
	case !chance(e.to.rng, w.plan.stale), !end.told && end.peer != e.as:
		w.lost(e)
		return
	}
	w.arriving(e, false)
	w.input(e.to, election.Received{From: e.as, Message: e.msg})
}

// cut ends one direction of a link. mend gives it back, and then the held messages arrive.
func (w *world) cut(a, b *agent) { w.links[a.id][b.id].cuts++ }

func (w *world) mend(a, b *agent) {
	l := &w.links[a.id][b.id]
	if l.cuts--; l.cuts > 0 {
		return
	}
	for _, e := range l.held {
		w.transmit(l, e)
	}
	l.held = nil
}

// joined reports whether both directions between the two agents work.
func (w *world) joined(a, b *agent) bool {
	return w.links[a.id][b.id].cuts == 0 && w.links[b.id][a.id].cuts == 0
}

func (w *world) find(p election.PeerID) *agent {
	for _, a := range w.agents {
		if a.peer == p {
			return a
		}
	}
	return nil
}

// checkWire checks that peers would accept the message: the codec encodes and decodes it.
func (w *world) checkWire(a *agent, m election.Message) {
	data, err := codec.EncodeMessage(m)
	if err == nil {
		_, err = codec.DecodeMessage(data)
	}
	if err != nil {
		w.fail("codec", "%s sends %s: %v", a.peer, messages.Describe(m), err)
	}
}

// redial is the mean time between two attempts to connect.
func (w *world) redial() time.Duration {
	if w.deaths {
		return w.plan.timing.Heartbeat / 20
	}
	return w.plan.timing.Heartbeat / 4
}
