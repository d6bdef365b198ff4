package election

import (
	"cmp"
	"slices"
)

// Version orders rosters: by the term of the driver that made them, then by its counter.
// Genesis is {0, 1}; {0, 0} is "no roster".
type Version struct {
	Driver  Term   `cbor:"1,keyasint"`
	Counter uint64 `cbor:"2,keyasint"`
}

func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Driver, w.Driver), cmp.Compare(v.Counter, w.Counter))
}

func (v Version) Before(w Version) bool { return v.Compare(w) < 0 }

// Voter is an agent whose grants count.
type Voter struct {
	Name string `cbor:"1,keyasint"`
	Peer PeerID `cbor:"2,keyasint"`
}

// MaxVoters bounds the voters of a roster, and of either half of a joint one.
const MaxVoters = 31

// Roster is a versioned set of voters. It is stable, or it is joint: then Next is not empty,
// and a change from Voters to Next is under way. Until the mark Committed, a majority is
// one of Voters; from then on it is one of each half (Ongaro 2014, section 4.3; R9 and R10
// in docs/guarantees.md).
//
// Invariant: a roster is never changed in place. Only a joint roster is Committed.
type Roster struct {
	Cluster   string  `cbor:"1,keyasint"` // drawn at random at genesis
	Version   Version `cbor:"2,keyasint"`
	Voters    []Voter `cbor:"3,keyasint"`           // sorted by peer ID
	Next      []Voter `cbor:"4,keyasint,omitempty"` // sorted by peer ID
	Floor     Term    `cbor:"5,keyasint,omitempty"` // no term at or below it is granted or renewed
	Committed bool    `cbor:"6,keyasint,omitempty"` // majorities of both halves have accepted it
}

func (r *Roster) Joint() bool { return len(r.Next) > 0 }

// Counted returns the voters whose votes count now (R10). It is for reading only.
func (r *Roster) Counted() []Voter {
	if r != nil && !r.Committed {
		return r.Voters
	}
	return r.All()
}

// All returns the voters of both halves, sorted by peer ID. It is for reading only.
func (r *Roster) All() []Voter {
	switch {
	case r == nil:
		return nil
	case !r.Joint():
		return r.Voters
	}
	all := slices.Concat(r.Voters, r.Next)
	SortVoters(all)
	return slices.CompactFunc(all, func(a, b Voter) bool { return a.Peer == b.Peer })
}

func (r *Roster) Has(p PeerID) bool {
	if r == nil {
		return false
	}
	is := func(v Voter) bool { return v.Peer == p }
	return slices.ContainsFunc(r.Voters, is) || slices.ContainsFunc(r.Next, is)
}

func (r *Roster) Named(name string) (Voter, bool) {
	for _, v := range r.All() {
		if v.Name == name {
			return v, true
		}
	}
	return Voter{}, false
}

func SortVoters(voters []Voter) {
	slices.SortFunc(voters, func(a, b Voter) int { return cmp.Compare(a.Peer, b.Peer) })
}

// Names lists, sorted, the names of the voters that match; of all if matches is nil.
func Names(voters []Voter, matches func(Voter) bool) []string {
	var names []string
	for _, v := range voters {
		if matches == nil || matches(v) {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Genesis is a proposed first roster, committed once all its voters have accepted it.
type Genesis struct {
	Proposer PeerID `cbor:"1,keyasint"`
	Attempt  uint64 `cbor:"2,keyasint"` // counts the proposer's attempts
	Roster   Roster `cbor:"3,keyasint"`
}

func (g *Genesis) Same(h *Genesis) bool {
	return g != nil && h != nil && g.Proposer == h.Proposer && g.Attempt == h.Attempt &&
		g.Roster.Cluster == h.Roster.Cluster && slices.Equal(g.Roster.Voters, h.Roster.Voters)
}
