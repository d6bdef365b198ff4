package membership

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

const (
	maxDeparted = 64
	// departedFor is how long this agent shows a lost member and tries to reach it.
	departedFor = 24 * time.Hour
)

// assembler makes views out of what memberlist lists. It belongs to the loop,
// reads no clock and does no I/O.
type assembler struct {
	self  Member // this agent
	judge func(Member) error
	owns  func(Member) bool // reports whether the member owns its name
	// answers reports whether a node, by gossip name, is proven to exist (delegate.answers).
	answers func(node string) bool

	members  map[election.PeerID]Member // of the last view
	departed map[election.PeerID]departure
	gone     map[life]time.Time // the lives that this agent has seen end, and when
	doubted  []Member           // members that the last view lacks, since the function doubt set them aside
}

// life is one lineage of one agent: gossip does not distinguish the lives of a lineage.
type life struct {
	peer election.PeerID
	boot election.LineageID
}

func lifeOf(m Member) life { return life{m.Peer, m.Lineage} }

type departure struct {
	member Member
	at     time.Time
}

func newAssembler(self Member, judge func(Member) error, owns func(Member) bool, answers func(node string) bool) *assembler {
	return &assembler{
		self: self, judge: judge, owns: owns, answers: answers,
		members: map[election.PeerID]Member{}, departed: map[election.PeerID]departure{}, gone: map[life]time.Time{},
	}
}

// assemble returns a view with the members and the departed, each sorted by peer ID, and what this agent
// refuses now.
func (a *assembler) assemble(now time.Time, seen []Member) (View, []Refusal) {
	var live, gone []Member
	for _, m := range seen {
		if m.Status == Alive {
			live = append(live, m)
		} else {
			gone = append(gone, m)
		}
	}
	live, a.doubted = a.doubt(live)
	live, refused := a.oneBoot(live)
	live, judged := a.accepted(live)
	live, doubles := a.oneName(live)
	refused = slices.Concat(refused, judged, doubles)

	members := make(map[election.PeerID]Member, len(live))
	for _, m := range live {
		members[m.Peer] = m
	}
	a.depart(now, members, gone, refused)
	a.bury(now, members, gone)
	a.members = members

	v := View{Members: live, Departed: make([]Member, 0, len(a.departed))}
	for _, d := range a.departed {
		v.Departed = append(v.Departed, d.member)
	}
	slices.SortFunc(v.Members, byPeer)
	slices.SortFunc(v.Departed, byPeer)
	return v, refused
}

// doubt sets aside members that may be invented or a recording. Anyone with the key can announce agents that
// do not exist. An attacker without the key can send captured gossip again: then memberlist lists as live,
// for a while, an agent that left long ago. So a new member enters a view only once it has answered. An
// owner of its name need not answer, if this agent has not seen its lineage end and no other member has the
// name. Members of the last view stay.
func (a *assembler) doubt(live []Member) (kept, doubted []Member) {
	claims := map[string]election.PeerID{}
	contested := map[string]bool{}
	for _, m := range live {
		if peer, ok := claims[m.Name]; ok && peer != m.Peer {
			contested[m.Name] = true
		}
		claims[m.Name] = m.Peer
	}
	for _, m := range live {
		old, was := a.members[m.Peer]
		_, ended := a.gone[lifeOf(m)]
		known := was && old.Lineage == m.Lineage || m.Peer == a.self.Peer && m.Lineage == a.self.Lineage
		if !known && (ended || contested[m.Name] || !a.owns(m)) && !a.answers(gossipName(m.Member)) {
			doubted = append(doubted, m)
			continue
		}
		kept = append(kept, m)
	}
	return kept, doubted
}

// maxGone bounds the ended lives that are remembered.
const maxGone = 1024

// bury remembers lives that ended, for departedFor. It forgets a life that is in the view again.
func (a *assembler) bury(now time.Time, members map[election.PeerID]Member, gone []Member) {
	for _, m := range gone {
		if _, ok := a.gone[lifeOf(m)]; !ok {
			a.gone[lifeOf(m)] = now
		}
	}
	for _, m := range a.members {
		a.gone[lifeOf(m)] = now
	}
	for _, m := range members {
		delete(a.gone, lifeOf(m))
	}
	maps.DeleteFunc(a.gone, func(_ life, at time.Time) bool { return now.Sub(at) > departedFor })
	keep(maxGone, a.gone, func(l, o life) int {
		return cmp.Or(a.gone[l].Compare(a.gone[o]), cmp.Compare(l.peer, o.peer), cmp.Compare(l.boot, o.boot))
	})
}

// keep deletes the map's first entries in the given order until at most `most` entries are left.
func keep[K comparable, V any](most int, of map[K]V, order func(a, b K) int) {
	if len(of) > most {
		for _, k := range slices.SortedFunc(maps.Keys(of), order)[:len(of)-most] {
			delete(of, k)
		}
	}
}

// oneBoot keeps the newest lineage of each agent. An older lineage has ended, but memberlist has not noticed
// that yet. Of this agent, oneBoot keeps the lineage that runs: a newer one belongs to an agent with a copy
// of this agent's identity.
func (a *assembler) oneBoot(live []Member) ([]Member, []Refusal) {
	slices.SortFunc(live, func(x, y Member) int {
		return cmp.Or(byPeer(x, y), cmp.Compare(y.JoinedAt, x.JoinedAt), cmp.Compare(y.Lineage, x.Lineage))
	})
	var kept []Member
	var refused []Refusal
	for i, m := range live {
		switch {
		case m.Peer == a.self.Peer && m.Lineage == a.self.Lineage:
			kept = append(kept, m)
		case m.Peer == a.self.Peer:
			// A lineage at this agent's own address is an earlier one of this agent. It looks newer if
			// the wall clock was set back since.
			if m.JoinedAt > a.self.JoinedAt && m.Status == Alive && m.GossipAddr != a.self.GossipAddr {
				refused = append(refused, Refusal{Cause: CauseIdentity, Name: m.Name, Addr: m.GossipAddr, Self: true, Err: fmt.Errorf(
					"agent %q at %s started later with this agent's identity, and the others listen to it: is the data directory a copy?", m.Name, m.GossipAddr)})
			}
		case i == 0 || live[i-1].Peer != m.Peer:
			kept = append(kept, m)
		}
	}
	return kept, refused
}

// accepted skips members that the judge refuses.
func (a *assembler) accepted(live []Member) (kept []Member, refused []Refusal) {
	for _, m := range live {
		if m.Peer != a.self.Peer {
			if err := a.judge(m); err != nil {
				refused = append(refused, Refusal{Cause: CauseJudge, Name: m.Name, Addr: m.GossipAddr, Err: err})
				continue
			}
		}
		kept = append(kept, m)
	}
	return kept, refused
}

// oneName keeps one of several agents with the same name: the one that owns the name, else the senior.
// This agent always stays in its own view. If another agent precedes it, oneName adds a refusal with Self.
func (a *assembler) oneName(live []Member) (kept []Member, refused []Refusal) {
	senior := map[string]Member{}
	for _, m := range live {
		if s, ok := senior[m.Name]; !ok || a.precedes(m, s) {
			senior[m.Name] = m
		}
	}
	for _, m := range live {
		s := senior[m.Name]
		if m.Peer == s.Peer {
			kept = append(kept, m)
			continue
		}
		r := Refusal{Cause: CauseName, Name: m.Name, Addr: m.GossipAddr, Err: fmt.Errorf(
			"the name %q is taken: the agent at %s has used it since %s; give the agent at %s a different name",
			m.Name, s.GossipAddr, time.Unix(0, s.JoinedAt).UTC().Format(time.RFC3339), m.GossipAddr)}
		if m.Peer == a.self.Peer {
			r.Addr, r.Self = s.GossipAddr, true
			kept = append(kept, m)
		}
		refused = append(refused, r)
	}
	return kept, refused
}

// precedes reports whether m has more right than s to the name that both have.
func (a *assembler) precedes(m, s Member) bool {
	if mine, theirs := a.owns(m), a.owns(s); mine != theirs {
		return mine
	}
	return cmp.Or(cmp.Compare(m.JoinedAt, s.JoinedAt), byPeer(m, s)) < 0
}

// depart moves members that are not live any more to the departed.
func (a *assembler) depart(now time.Time, members map[election.PeerID]Member, gone []Member, refused []Refusal) {
	out := map[netip.AddrPort]bool{}
	for _, r := range refused {
		out[r.Addr] = true
	}
	names := map[string]bool{}
	for _, m := range members {
		names[m.Name] = true
	}
	for _, m := range gone {
		old, known := a.departed[m.Peer]
		_, was := a.members[m.Peer]
		there := a.owns(m) || a.answers(gossipName(m.Member))
		fresh := was || !known && len(a.departed) < maxDeparted && !names[m.Name] && there
		if (fresh || known && old.member.JoinedAt < m.JoinedAt) && a.judge(m) == nil {
			a.departed[m.Peer] = departure{member: m, at: now}
		}
	}
	for peer, m := range a.members {
		if _, ok := a.departed[peer]; !ok && !out[m.GossipAddr] {
			m.Status = Dead
			a.departed[peer] = departure{member: m, at: now}
		}
	}
	maps.DeleteFunc(a.departed, func(peer election.PeerID, d departure) bool {
		_, ok := members[peer]
		return ok || peer == a.self.Peer || now.Sub(d.at) > departedFor
	})
	keep(maxDeparted, a.departed, func(p, o election.PeerID) int {
		return cmp.Or(a.departed[p].at.Compare(a.departed[o].at), cmp.Compare(p, o))
	})
}

// lost returns the dead members, which the joiner tries to reach, and since when each is dead.
func (a *assembler) lost() map[netip.AddrPort]time.Time {
	lost := map[netip.AddrPort]time.Time{}
	for _, d := range a.departed {
		if d.member.Status == Dead && d.member.GossipAddr.IsValid() {
			lost[d.member.GossipAddr] = d.at
		}
	}
	return lost
}

func byPeer(x, y Member) int { return cmp.Compare(x.Peer, y.Peer) }
