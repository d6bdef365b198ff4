package election

import (
	"cmp"
	"slices"
)

// Candidacy is a member's wish to lead an election.
type Candidacy struct {
	Election Name   `cbor:"1,keyasint"`
	Priority int    `cbor:"2,keyasint"`           // 0: it never leads
	Meta     string `cbor:"3,keyasint,omitempty"` // what the program reports about itself, in UTF-8; agents up to 0.5.0 ignore it
}

// Member is an agent as gossip sees it.
type Member struct {
	Peer        PeerID
	Lineage     LineageID
	Run         RunID
	Name        string
	JoinedAt    int64       // Unix nanoseconds of the member's start, by its wall clock
	Candidacies []Candidacy // sorted by election; an agent up to 0.3.0 lists only as many as fit into gossip
	Draining    bool
	Suspected   bool // gossip suspects that it has failed; a recent heartbeat counts for more
}

// FindCandidacy returns the index of an election in a sorted list, and whether it is in the list.
func FindCandidacy(sorted []Candidacy, e Name) (int, bool) {
	return slices.BinarySearchFunc(sorted, e, func(c Candidacy, e Name) int { return cmp.Compare(c.Election, e) })
}

// RankIn returns the member's rank in the election, given its sorted candidacies; false: it has none there.
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
	i, ok := slices.BinarySearchFunc(v.Members, p, func(m Member, p PeerID) int { return cmp.Compare(m.Peer, p) })
	if !ok {
		return Member{}, false
	}
	return v.Members[i], true
}

// Named returns the member with that name. If several members have it, Named returns the first by peer ID.
func (v View) Named(name string) (Member, bool) {
	for _, m := range v.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// Field is what one agent knows about the candidates of an election at one moment.
type Field struct {
	Self Rank // the rank of this agent, even if it can't lead
	Able bool // this agent can be nominated
	// Ranks are the candidates that can be elected, the best first. This agent is among them if Able.
	Ranks []Rank
	Leads *Leadership // the leadership of this agent; nil: it does not lead
	// Closed means that no round may start now, because this agent has enough rounds in progress or queued.
	// A round that would have to start again is then given up, so that other elections get their turn.
	Closed bool
	// Patience is when this agent stops waiting for another agent's round: one vote timeout
	// after the old lease has ended.
	Patience Instant
}

// Leadership is a confirmed leader and its term.
type Leadership struct {
	Leader Holder
	Term   Term
}

// Verdict is what a selection algorithm asks its agent to do.
type Verdict struct {
	Send    []Envelope
	Nominee bool    // this agent should ask for votes; set once in a round
	WakeAt  Instant // when the algorithm wants its next Tick
}
