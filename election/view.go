package election

import (
	"cmp"
	"slices"
)

// Candidacy is a member's wish to lead an election.
type Candidacy struct {
	Election Name `cbor:"1,keyasint"`
	Priority int  `cbor:"2,keyasint"` // 0 never leads
}

// Member is an agent as gossip sees it.
type Member struct {
	Peer        PeerID
	Boot        BootID
	Name        string
	JoinedAt    int64       // Unix nanoseconds, the member's own wall clock at its start
	Candidacies []Candidacy // sorted by election; as many as fit into gossip
	Draining    bool
	Suspected   bool // by gossip; a live heartbeat outweighs it
}

// Rank returns the member's rank in the election, if gossip shows that it is a candidate.
func (m Member) Rank(e Name) (Rank, bool) { return m.RankIn(e, m.Candidacies) }

// RankIn is Rank for a member with those candidacies, sorted by election.
func (m Member) RankIn(e Name, candidacies []Candidacy) (Rank, bool) {
	i, found := slices.BinarySearchFunc(candidacies, e, func(c Candidacy, e Name) int {
		return cmp.Compare(c.Election, e)
	})
	if !found {
		return Rank{}, false
	}
	return Rank{Priority: candidacies[i].Priority, JoinedAt: m.JoinedAt, Peer: m.Peer}, true
}

// View is an immutable snapshot of the live members, self included, sorted by peer ID.
type View struct {
	Members []Member
}

func (v View) Find(p PeerID) (Member, bool) {
	i, ok := slices.BinarySearchFunc(v.Members, p, func(m Member, p PeerID) int {
		return cmp.Compare(m.Peer, p)
	})
	if !ok {
		return Member{}, false
	}
	return v.Members[i], true
}

// Named returns the member of that name; of several, the first by peer ID.
func (v View) Named(name string) (Member, bool) {
	for _, m := range v.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}
