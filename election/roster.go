package election

import (
	"cmp"
	"slices"
	"time"
)

// Version orders rosters: by the term of the driver that made them, then by that driver's counter.
// The first roster has {0, 1}. {0, 0} means that an agent has no roster.
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

// Level is the feature level of this version of Doyen; 0.2.0 has level 0. A message or field
// that was added at some level is used only with agents that have at least this level.
const Level = LevelNews

// The levels at which features were added.
const (
	LevelSettings = 2 // settings and rights in the roster; Progress
	LevelWords    = 3
	LevelNews     = 4 // Listen and News
)

// Settings apply to all agents that have the roster, and replace what each has configured.
type Settings struct {
	Algorithm string        `cbor:"1,keyasint,omitempty"` // Bully or Ring; empty: as each agent has configured
	Lease     time.Duration `cbor:"2,keyasint,omitempty"` // of every vote and renewal at the roster's version; 0: as each request asks
}

// The bounds of a roster's rights.
const (
	MaxRights     = 64
	MaxRightsSize = 8 << 10 // bytes
)

// Right is the rule about which agents may lead one election.
type Right struct {
	Election    Name     `cbor:"1,keyasint"`
	Agents      []PeerID `cbor:"2,keyasint,omitempty"` // sorted; empty: any agent may
	MaxPriority int      `cbor:"3,keyasint,omitempty"` // the highest that a candidate may have; 0: any
}

// RightsSize is roughly how many bytes the rights take.
func RightsSize(rights []Right) int {
	n := 0
	for _, r := range rights {
		n += len(r.Election) + 12
		for _, p := range r.Agents {
			n += len(p) + 2
		}
	}
	return n
}

// Roster is a versioned set of voters. It is joint if Next is not empty: a change from Voters to
// Next is in progress. Otherwise it is stable. On a joint roster, each election needs a majority of
// Voters, and once Committed is set, also one of Next (R9 and R10 in docs/guarantees.md). In Ongaro
// 2014, section 4.3, both majorities are needed from the start.
//
// Invariant: a roster is never changed in place. Only a joint roster is Committed.
type Roster struct {
	Cluster   string  `cbor:"1,keyasint"` // drawn at random at genesis
	Version   Version `cbor:"2,keyasint"`
	Voters    []Voter `cbor:"3,keyasint"`           // sorted by peer ID
	Next      []Voter `cbor:"4,keyasint,omitempty"` // sorted by peer ID
	Floor     Term    `cbor:"5,keyasint,omitempty"` // terms up to this one are not granted or renewed
	Committed bool    `cbor:"6,keyasint,omitempty"` // majorities of both halves have accepted it
	// Only agents of level 2 or higher know the fields Rights and Settings.
	Rights   []Right  `cbor:"7,keyasint,omitempty"` // sorted by election; an election without a right may be led by any agent
	Settings Settings `cbor:"8,keyasint,omitzero"`
}

// Level is the feature level that an agent needs to read all of the roster. An agent of a lower level drops
// the fields it does not know: its roster would have other content under the same version.
func (r *Roster) Level() uint64 {
	if r == nil || len(r.Rights) == 0 && r.Settings == (Settings{}) {
		return 0
	}
	return LevelSettings
}

// Lease is the lease of every vote and renewal at this version. 0: each request has its own.
func (r *Roster) Lease() time.Duration {
	if r == nil {
		return 0
	}
	return r.Settings.Lease
}

// Follows reports whether agents use the roster's settings, not their own. If so, the roster sets all of them.
func (r *Roster) Follows() bool { return r != nil && r.Settings != (Settings{}) }

// Right returns the right of the election. The result is false if the election has no right.
func (r *Roster) Right(e Name) (Right, bool) {
	if r == nil {
		return Right{}, false
	}
	i, has := slices.BinarySearchFunc(r.Rights, e, func(r Right, e Name) int { return cmp.Compare(r.Election, e) })
	if !has {
		return Right{}, false
	}
	return r.Rights[i], true
}

// Allows reports whether the agent may lead the election with the given priority.
func (r *Roster) Allows(e Name, p PeerID, priority int) bool {
	right, has := r.Right(e)
	return !has || (len(right.Agents) == 0 || slices.Contains(right.Agents, p)) && (right.MaxPriority == 0 || priority <= right.MaxPriority)
}

// SameContent reports whether two rosters have the same voters, settings and rights.
func (r *Roster) SameContent(o *Roster) bool {
	return slices.Equal(r.Voters, o.Voters) && r.Settings == o.Settings &&
		slices.EqualFunc(r.Rights, o.Rights, func(a, b Right) bool {
			return a.Election == b.Election && a.MaxPriority == b.MaxPriority && slices.Equal(a.Agents, b.Agents)
		})
}

func (r *Roster) Joint() bool { return len(r.Next) > 0 }

// Counted returns the voters whose votes count now (R10). Callers must not change the slice.
func (r *Roster) Counted() []Voter {
	if r != nil && !r.Committed {
		return r.Voters
	}
	return r.All()
}

// All returns the voters of both halves, sorted by peer ID. Callers must not change the slice.
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

// Names lists, sorted, the names of the voters that match. A nil function matches all.
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

// Genesis is a proposed first roster. It is committed when all its voters have accepted it.
type Genesis struct {
	Proposer PeerID `cbor:"1,keyasint"`
	Attempt  uint64 `cbor:"2,keyasint"` // counts the proposer's attempts
	Roster   Roster `cbor:"3,keyasint"`
}

func (g *Genesis) Same(h *Genesis) bool {
	return g != nil && h != nil && g.Proposer == h.Proposer && g.Attempt == h.Attempt &&
		g.Roster.Cluster == h.Roster.Cluster && slices.Equal(g.Roster.Voters, h.Roster.Voters)
}
