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
	Lineage     LineageID
	Run         RunID
	Name        string
	JoinedAt    int64       // Unix nanoseconds, the member's own wall clock at its start
	Candidacies []Candidacy // sorted by election; of agents up to 0.3.0, as many as fit into gossip
	Draining    bool
	Suspected   bool // by gossip; a recent heartbeat counts for more
}

// FindCandidacy returns the place of an election in a sorted list, and whether it is there.
func FindCandidacy(sorted []Candidacy, e Name) (int, bool) {
	return slices.BinarySearchFunc(sorted, e, func(c Candidacy, e Name) int { return cmp.Compare(c.Election, e) })
}

// RankIn is the member's rank by these candidacies. They must be sorted.
func (m Member) RankIn(e Name, candidacies []Candidacy) (Rank, bool) {
	i, found := FindCandidacy(candidacies, e)
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

// Field is what one agent knows of the candidates of an election now.
type Field struct {
	Self Rank // of this agent, also if it can't lead
	Able bool // this agent can be nominated
	// Ranks are the candidates that can be elected, best first, self included if Able.
	Ranks []Rank
	Leads *Leadership // this agent's own; nil: it does not lead
	// Full: this agent has as many rounds as it may have. It starts none now, and does not
	// start a round again but ends it, so that other elections get their turn.
	Full bool
	// Patience is until when to wait for another agent's round: a vote timeout after
	// the end of the old lease.
	Patience Instant
}

// Leadership is a confirmed leader and its term.
type Leadership struct {
	Leader Holder
	Term   Term
}

// Verdict is what a selection algorithm asks for.
type Verdict struct {
	Send    []Envelope
	Nominee bool    // this agent should ask for votes; once in a round
	WakeAt  Instant // when Tick is wanted
}
