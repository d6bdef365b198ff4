package election

import (
	"cmp"
	"slices"
)

// Candidacy says that a member stands in an election.
type Candidacy struct {
	Election Name
	Priority int // 0 never leads
}

// Member is an agent as gossip sees it.
type Member struct {
	Peer        PeerID
	Boot        BootID
	Name        string
	JoinedAt    int64       // Unix nanoseconds, the member's own wall clock at its start
	Candidacies []Candidacy // sorted by election
	Draining    bool
	Suspected   bool // by gossip; never overrides a live heartbeat
}

// Rank returns the member's rank in the election, and whether it stands in it.
func (m Member) Rank(e Name) (Rank, bool) {
	for _, c := range m.Candidacies {
		if c.Election == e {
			return Rank{Priority: c.Priority, JoinedAt: m.JoinedAt, Peer: m.Peer}, true
		}
	}
	return Rank{}, false
}

// View is an immutable snapshot of the live members, self included, sorted by
// peer ID, one entry a peer.
type View struct {
	Members []Member
}

// Find returns the member with that peer ID.
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
