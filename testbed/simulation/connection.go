package simulation

import (
	"time"

	"github.com/doyen-election/doyen/election"
)

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
	pending bool            // at tellAt it will be notified of a newer connection
	tellAt  int64
}

// side returns the index of a's end of its connection to b.
func (w *world) side(a, b *agent) int {
	if a.id < b.id {
		return 0
	}
	return 1
}

// dial tries to connect the two agents until it succeeds, or one of them is gone.
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

// hangUp closes the connection. If loud, both ends notice soon; if not, each notices by its own
// keep-alive only.
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

// redials makes a's connection to the peer again, as a asked. The peer notices, unless nothing
// from a reaches it.
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
