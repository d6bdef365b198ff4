package simulation

import (
	"time"

	"github.com/doyen-election/doyen/election"
)

// conn is the connection of two agents. Each end learns of it, and of its
// loss, by itself and late.
type conn struct {
	up      bool
	gen     uint32
	dialing bool
	ends    [2]end // of the agent with the lower number, and of the other
}

// end is what one agent knows of a connection.
type end struct {
	told    bool            // it was told that the peer is connected
	peer    election.PeerID // by which identity
	gen     uint32          // on which connection
	life    uint32          // to which process of the peer
	pending bool            // it is about to be told of a newer one, at tellAt
	tellAt  int64
}

// side is a's end of its connection to b.
func (w *world) side(a, b *agent) int {
	if a.id < b.id {
		return 0
	}
	return 1
}

// dial tries to connect the two until it works or one of them is gone.
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
		case c.up || !a.alive || !b.alive: // who starts dials again
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

// connect tells a of its new connection to b.
func (w *world) connect(c *conn, a, b *agent) {
	e := &c.ends[w.side(a, b)]
	gen, life, to := c.gen, a.life, b.life
	told := election.PeerConnected{Peer: b.peer, Lineage: b.boot, Run: b.run, Secret: b.hash()}
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

// hangUp closes the connection. loud: both ends notice soon; else only by their
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

// redials has a's connection to the peer made again, as a asked. The peer notices
// unless nothing of a reaches it.
func (w *world) redials(a *agent, p election.PeerID) {
	b := w.find(p)
	if b == nil || b == a {
		return
	}
	w.hangUp(a, b, w.links[a.id][b.id].cuts == 0)
	w.lose(w.conns[a.id][b.id], a, b, w.around(w.redial()))
}

// lose tells a that its connection to b is lost, unless a newer one is there.
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
