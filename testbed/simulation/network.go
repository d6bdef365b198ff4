package simulation

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/messages"
)

// maxHeld bounds the messages that a silently cut link holds back, as TCP would.
const maxHeld = 64

type flight struct {
	to    *agent
	from  *agent
	as    election.PeerID // the sender's identity when it sent; the sender may lose its disk meanwhile
	epoch int             // of the sender's clock when it sent
	life  uint32          // of the receiver, when the message was sent
	conn  uint32          // generation of the connection it was sent on
	msg   election.Message
	arrow int // its arrow in the history
}

type link struct {
	rng    *rand.Rand
	cuts   int   // cuts under way
	lastAt int64 // when the last message arrives; only messages drawn to be reordered overtake it
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
// arrives at any later time.
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

// arrive hands over a message. A message of an old connection may be lost; a message to a former process
// always is.
func (w *world) arrive(e flight) {
	if !e.to.alive || e.to.life != e.life {
		w.lost(e)
		return
	}
	c := w.conns[e.to.id][e.from.id]
	end := c.ends[w.side(e.to, e.from)]
	switch {
	case end.told && end.gen == e.conn:
	case end.pending && c.gen == e.conn: // the stream exists, and the agent reads it soon
		w.Push(max(w.Now, end.tellAt)+1, event{flight: e})
		return
	case e.epoch != e.from.clock.epoch && end.told: // the sender's host was down since, so the stream is closed
		w.lost(e)
		return
	case !chance(e.to.rng, w.plan.stale), !end.told && end.peer != e.as:
		w.lost(e)
		return
	}
	w.arriving(e, false)
	w.input(e.to, election.Received{From: e.as, Message: e.msg})
}

// cut stops one direction of a link. mend restores it, and then the held messages arrive.
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
	a, _ := each.First(w.agents, func(a *agent) bool { return a.peer == p })
	return a
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

// conn is the connection of two agents. Each end learns of the connection, and of its loss,
// separately and late.
type conn struct {
	up      bool
	gen     uint32
	dialing bool
	ends    [2]end // of the agent with the lower id, and of the other
}

// end is what one agent knows of a connection.
type end struct {
	told    bool            // the agent was notified that the peer is connected
	peer    election.PeerID // the identity of the peer in that notice
	gen     uint32          // the generation of the connection in that notice
	life    uint32          // the peer's process in that notice
	pending bool            // at tellAt the agent will be notified of a newer connection
	tellAt  int64
}

// side returns the index of a's end of its connection to b.
func (w *world) side(a, b *agent) int {
	if a.id < b.id {
		return 0
	}
	return 1
}

// dial tries to connect the two agents until that succeeds, or one of them is down.
func (w *world) dial(a, b *agent, in time.Duration) {
	if a == b {
		return
	}
	c := w.conns[a.id][b.id]
	if c.dialing || c.up {
		return
	}
	c.dialing = true
	w.after(in, func() {
		c.dialing = false
		switch {
		case c.up || !a.alive || !b.alive: // an agent dials again when it starts
		case a.paused > 0 || b.paused > 0 || !w.joined(a, b) || !a.agrees(b):
			w.dial(a, b, w.around(w.redial()))
		default:
			c.up = true
			c.gen++
			w.connect(c, a, b)
			w.connect(c, b, a)
		}
	})
}

// connect notifies a of its new connection to b.
func (w *world) connect(c *conn, a, b *agent) {
	e := &c.ends[w.side(a, b)]
	gen, life, to := c.gen, a.life, b.life
	told := election.PeerConnected{Peer: b.peer, Lineage: b.boot, Run: b.run, Level: election.Level}
	wait := w.around(w.plan.delay) + 1
	e.pending, e.tellAt = true, w.Now+int64(wait)
	w.after(wait, func() {
		if c.gen != gen || a.life != life {
			return
		}
		e.pending = false
		if !a.alive || b.life != to && b.wiped > 0 {
			return
		}
		if e.told && (e.peer != b.peer || chance(a.rng, 0.5)) {
			w.input(a, election.PeerLost{Peer: e.peer})
		}
		e.told, e.peer, e.gen, e.life = true, b.peer, gen, to
		told.Peer = b.peer
		w.input(a, told)
		if !c.up { // lost already
			w.lose(c, a, b, w.around(w.redial()))
		}
	})
}

// hangUp closes the connection. If loud, both ends notice soon. If not, each notices only by its
// own keep-alive.
func (w *world) hangUp(a, b *agent, loud bool) {
	c := w.conns[a.id][b.id]
	if !c.up {
		return
	}
	c.up = false
	for _, x := range [2][2]*agent{{a, b}, {b, a}} {
		wait := w.around(w.redial())
		if !loud {
			wait = w.plan.timing.Lease/2 + w.around(3*w.plan.timing.Lease)
		}
		w.lose(c, x[0], x[1], wait)
	}
	w.dial(a, b, w.around(w.redial()))
}

// redials replaces a's connection to the peer, as a asked. The peer notices, unless nothing from
// a reaches it.
func (w *world) redials(a *agent, p election.PeerID) {
	b := w.find(p)
	if b == nil || b == a {
		return
	}
	w.hangUp(a, b, w.links[a.id][b.id].cuts == 0)
	w.lose(w.conns[a.id][b.id], a, b, w.around(w.redial()))
}

// lose notifies a that its connection to b is lost, unless there is a newer one by then.
func (w *world) lose(c *conn, a, b *agent, in time.Duration) {
	e := &c.ends[w.side(a, b)]
	gen, life := e.gen, a.life
	if !e.told {
		return
	}
	w.after(in, func() {
		if e.told && e.gen == gen && a.life == life {
			e.told = false
			w.input(a, election.PeerLost{Peer: e.peer})
		}
	})
}

// sighting is what one agent's gossip shows of another agent.
type sighting struct {
	present bool
	member  election.Member
}

// advert is what the agent's advertisement contains.
func (w *world) advert(a *agent) election.Member {
	return election.Member{Peer: a.peer, Lineage: a.boot, Run: a.run, Name: a.name, JoinedAt: a.joinedAt, Draining: a.draining}
}

// advertise lets the agent see itself in gossip at once. It and the others see each other gradually.
func (w *world) advertise(a *agent) {
	a.seen[a.id] = sighting{present: true, member: w.advert(a)}
	w.tellView(a)
	w.gossip(a)
	for _, b := range w.agents {
		if b != a {
			w.sight(a, b, w.rumourTime())
		}
	}
}

// gossip lets all others learn of the agent's present state, gradually.
func (w *world) gossip(a *agent) {
	for _, b := range w.agents {
		if b != a {
			w.sight(b, a, w.rumourTime())
		}
	}
}

func (w *world) rumourTime() time.Duration {
	if w.phase != chaos {
		return w.around(w.plan.timing.Heartbeat / 4)
	}
	return w.around(w.plan.timing.Lease / 2)
}

// sight lets a learn of b's state, after the given time. Half of the time gossip finds a way
// around a cut. If b can't be reached, a's gossip first suspects b, and later forgets it.
func (w *world) sight(a, b *agent, in time.Duration) {
	w.after(in, func() {
		s := &a.seen[b.id]
		before := s.present
		switch {
		case b.alive && a.agrees(b) && (w.joined(a, b) || chance(a.rng, 0.5)):
			m := w.advert(b)
			if s.present && reflect.DeepEqual(s.member, m) {
				return
			}
			*s = sighting{present: true, member: m}
		case s.present && !s.member.Suspected:
			s.member.Suspected = true
			w.sight(a, b, w.rumourTime())
		default:
			*s = sighting{}
		}
		if before || s.present {
			w.tellView(a)
		}
	})
}

// tellView gives the agent a view: all members that it sees, itself included.
func (w *world) tellView(a *agent) {
	if !a.alive {
		return
	}
	var v election.View
	for _, s := range a.seen { // agents are numbered in the order of their peer IDs
		if s.present {
			v.Members = append(v.Members, s.member)
		}
	}
	w.input(a, election.ViewChanged{View: v})
}
