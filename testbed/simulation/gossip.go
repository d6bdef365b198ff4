package simulation

import (
	"reflect"
	"time"

	"github.com/doyen-election/doyen/election"
)

// sighting is what one agent's gossip shows of another agent.
type sighting struct {
	present bool
	member  election.Member
}

// advert is what the agent's advertisement contains.
func (w *world) advert(a *agent) election.Member {
	return election.Member{Peer: a.peer, Lineage: a.boot, Run: a.run, Name: a.name, JoinedAt: a.joinedAt, Draining: a.draining}
}

// advertise shows the advertisement to the agent itself at once, and to the others gradually.
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
// around a cut. If b can't be reached, gossip first suspects it, and later forgets it.
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

// tellView hands the agent the view of all members that it sees, itself included.
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
