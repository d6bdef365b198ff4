package simulation

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// sighting is what one agent's gossip says of another.
type sighting struct {
	present bool
	member  election.Member
}

// gossipRoom is for how many elections an advertisement has room; the agents tell
// each other of the rest.
const gossipRoom = 2

// advert is what the agent tells of itself.
func (w *world) advert(a *agent) election.Member {
	m := election.Member{Peer: a.peer, Lineage: a.boot, Run: a.run, Name: a.name, JoinedAt: a.joinedAt, Draining: a.draining}
	for e, s := range a.stand {
		if s.stands && len(m.Candidacies) < gossipRoom {
			m.Candidacies = append(m.Candidacies, election.Candidacy{Election: w.plan.elections[e], Priority: s.priority})
		}
	}
	return m
}

// advertise tells the agent itself at once, and the others by and by.
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

// gossip lets everybody else learn, by and by, how the agent is.
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

// sight lets a learn how b is, from here on. Gossip finds its way round a cut
// half the time; who can't be reached is suspected first and gone later.
func (w *world) sight(a, b *agent, in time.Duration) {
	w.after(in, func() {
		s := &a.seen[b.id]
		before := s.present
		switch {
		case b.alive && a.agrees(b) && (w.joined(a, b) || chance(a.rng, 0.5)):
			m := w.advert(b)
			if s.present && sameMember(s.member, m) {
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

// sameMember reports whether gossip has nothing new to tell.
func sameMember(a, b election.Member) bool {
	return a.Peer == b.Peer && a.Lineage == b.Lineage && a.Run == b.Run && a.Name == b.Name && a.JoinedAt == b.JoinedAt && a.Draining == b.Draining &&
		a.Suspected == b.Suspected && slices.Equal(a.Candidacies, b.Candidacies)
}

// tellView hands the agent what it sees, itself included.
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
