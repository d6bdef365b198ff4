package exhaustive

import (
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// RosterOptions choose which change of the voters to explore, and how far.
type RosterOptions struct {
	From, To string   // the names of the voters, a letter each
	Ballots  int      // how many candidacies for driver there may be
	After    []string // the steps already taken, in the words of a path
	States   int      // how many states to visit at most
}

// RosterResult is the result of ExploreRoster.
type RosterResult struct {
	States    int
	Depth     int  // every state up to this many steps was visited
	Complete  bool // there are no other states within the ballots
	Done      int  // states in which the new voters are committed
	Back      int  // states in which the former voters are committed again
	Violation error
	Path      []string
}

func (r RosterResult) String() string {
	return fmt.Sprintf("%d states, complete to depth %d (all: %v); %d with the new voters, %d back with the former", r.States, r.Depth, r.Complete, r.Done, r.Back)
}

// A rosterWorld is one change of the voters as ballots alone: the product's own quorum.Driver,
// and voters that follow R1, R2 and R10. There is no time and there are no promises, so R4's
// wait ends at once. Every message may arrive at any time, repeatedly, or never. A voter may
// learn of any roster that another one holds. A driver may stop at any time, may begin a new
// ballot without memory of the last one, and may take the way back in any ballot.
type rosterWorld struct {
	rosters []*election.Roster // all rosters that were proposed, and the first one
	agents  []rosterAgent
	ballots election.Term
	said    []string // the steps that led here
}

type rosterAgent struct {
	id       election.PeerID
	held     *election.Roster // nil: the agent is to be added
	term     election.Term    // its record in the roster election
	accepted []election.Version
	seeks    *rosterBallot
	drives   *quorum.Driver
	begun    string // the ballot and the rosters from which it drives
}

// rosterBallot is a candidacy in the roster election, with the votes for it.
type rosterBallot struct {
	term   election.Term
	roster *election.Roster
	votes  []election.PeerID
}

func votersNamed(names string) (vs []election.Voter) {
	for _, n := range names {
		vs = append(vs, election.Voter{Name: string(n), Peer: election.PeerID(n)})
	}
	return vs
}

func newRosterWorld(o RosterOptions) *rosterWorld {
	first := &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}, Voters: votersNamed(o.From)}
	w := &rosterWorld{rosters: []*election.Roster{first}}
	both := &election.Roster{Voters: first.Voters, Next: votersNamed(o.To), Committed: true}
	for _, v := range both.All() {
		a := rosterAgent{id: v.Peer}
		if first.Has(v.Peer) {
			a.held = first
		}
		w.agents = append(w.agents, a)
	}
	return w
}

func (w *rosterWorld) clone() *rosterWorld {
	next := *w
	next.rosters, next.said = slices.Clip(w.rosters), slices.Clip(w.said)
	next.agents = slices.Clone(w.agents)
	for i := range next.agents {
		a := &next.agents[i]
		a.accepted = slices.Clip(a.accepted)
		if a.seeks != nil {
			b := *a.seeks
			b.votes = slices.Clip(b.votes)
			a.seeks = &b
		}
		if a.drives != nil {
			a.drives = a.drives.Clone()
		}
	}
	return &next
}

// after returns the world once the step has happened.
func (w *rosterWorld) after(s rosterStep) *rosterWorld {
	n := w.clone()
	n.said = append(n.said, s.text)
	s.do(n)
	return n
}

// key distinguishes states. Names are letters, and numbers are small.
func (w *rosterWorld) key() string {
	var b []byte
	put := func(v election.Version) { b = append(b, byte(v.Driver), byte(v.Counter)) }
	rosters := slices.Clone(w.rosters)
	slices.SortFunc(rosters, func(x, y *election.Roster) int { return x.Version.Compare(y.Version) })
	for _, r := range rosters {
		put(r.Version)
		b = append(b, byte(len(r.Voters)), byte(len(r.Next)), byte(r.Voters[len(r.Voters)-1].Name[0]), flagOf(r.Committed))
	}
	for i := range w.agents {
		a := &w.agents[i]
		b = append(b, '|')
		put(version(a.held))
		b = append(b, byte(a.term), byte(len(a.accepted)))
		accepted := slices.Clone(a.accepted)
		slices.SortFunc(accepted, election.Version.Compare)
		for _, v := range accepted {
			put(v)
		}
		if s := a.seeks; s != nil {
			b = append(b, 's', byte(s.term))
			put(s.roster.Version)
			votes := slices.Clone(s.votes)
			slices.Sort(votes)
			for _, id := range votes {
				b = append(b, id...)
			}
		}
		if d := a.drives; d != nil {
			b = append(append(b, 'd'), a.begun...)
			put(d.Proposal().Version)
			b = append(b, flagOf(d.Back()))
		}
	}
	return string(b)
}

func flagOf(is bool) byte {
	if is {
		return 1
	}
	return 0
}

func version(r *election.Roster) election.Version {
	if r == nil {
		return election.Version{}
	}
	return r.Version
}

// ExploreRoster visits the states of a change of the voters breadth first.
func ExploreRoster(o RosterOptions) RosterResult {
	first := newRosterWorld(o)
	for _, text := range o.After {
		steps := first.steps(o)
		i := slices.IndexFunc(steps, func(s rosterStep) bool { return s.text == text })
		if i < 0 {
			return RosterResult{Violation: fmt.Errorf("%q can't happen there", text), Path: first.said}
		}
		first = first.after(steps[i])
	}
	level := []*rosterWorld{first}
	seen := map[string]bool{level[0].key(): true}
	r := RosterResult{States: 1}
	for depth := 1; len(level) > 0; depth++ {
		var next []*rosterWorld
		for _, w := range level {
			for _, step := range w.steps(o) {
				n := w.after(step)
				k := n.key()
				if seen[k] {
					continue
				}
				seen[k] = true
				r.States++
				if r.Violation = n.check(o, &r); r.Violation != nil {
					r.Path = n.said
					return r
				}
				if r.States >= o.States {
					return r
				}
				next = append(next, n)
			}
		}
		r.Depth, level = depth, next
	}
	r.Complete = true
	return r
}

// check searches for two authorities: the former voters and the new ones, each able to decide
// alone.
func (w *rosterWorld) check(o RosterOptions, r *RosterResult) error {
	var former, newer *election.Roster
	var back, done bool
	for _, x := range w.rosters {
		holds := func(id election.PeerID) bool {
			return slices.ContainsFunc(w.agents, func(a rosterAgent) bool { return a.id == id && version(a.held) == x.Version })
		}
		accepted := func(id election.PeerID) bool {
			return slices.ContainsFunc(w.agents, func(a rosterAgent) bool { return a.id == id && slices.Contains(a.accepted, x.Version) })
		}
		isNew := !x.Joint() && slices.Equal(x.Voters, votersNamed(o.To))
		switch {
		case isNew && quorum.Confirmed(x, holds):
			newer = x
		case !isNew && quorum.Confirmed(x, holds):
			former = x
		}
		if !x.Joint() && quorum.Accepted(x, accepted) {
			done, back = done || isNew, back || !isNew
		}
	}
	switch {
	case former != nil && newer != nil:
		return fmt.Errorf("the former voters decide by %v and the new ones by %v", former.Version, newer.Version)
	case back && done:
		return fmt.Errorf("both the former and the new voters are committed")
	case done:
		r.Done++
	case back:
		r.Back++
	}
	return nil
}
