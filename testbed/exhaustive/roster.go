package exhaustive

import (
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/testbed/messages"
)

// RosterOptions choose which change of the voters to explore, and how far.
type RosterOptions struct {
	From, To string   // the names of the voters, a letter each
	Ballots  int      // how many candidacies for driver there may be
	After    []string // the steps already taken, in the words of a path
	States   int      // how many states to visit at most
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
	o       RosterOptions
}

type rosterAgent struct {
	id       election.PeerID
	held     *election.Roster // nil: the agent is to be added
	term     election.Term    // its record in the roster election
	accepted []election.Version
	seeks    *rosterBallot
	drives   *quorum.Driver
	begun    string // which ballot and which rosters it had when it began to drive
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
	w := &rosterWorld{o: o, rosters: []*election.Roster{first}}
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

// key distinguishes states. It sorts what may have come in any order.
func (w *rosterWorld) key() (text string) {
	slices.SortFunc(w.rosters, func(x, y *election.Roster) int { return x.Version.Compare(y.Version) })
	for _, r := range w.rosters {
		text += fmt.Sprint(r.Version, len(r.Voters), len(r.Next), r.Voters[len(r.Voters)-1].Name, r.Committed)
	}
	for _, a := range w.agents {
		slices.SortFunc(a.accepted, election.Version.Compare)
		text += fmt.Sprint("|", version(a.held), a.term, a.accepted)
		if s := a.seeks; s != nil {
			slices.Sort(s.votes)
			text += fmt.Sprint("s", s.term, s.roster.Version, s.votes)
		}
		if d := a.drives; d != nil {
			text += fmt.Sprint("d", a.begun, d.Proposal().Version, d.Back())
		}
	}
	return text
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
func ExploreRoster(o RosterOptions) Found {
	w := newRosterWorld(o)
	if err := take(w, o.After...); err != nil {
		return Found{Violation: err}
	}
	return search(w, o.States)
}

// check searches for two authorities: the former voters and the new ones, each able to decide
// alone.
func (w *rosterWorld) check() error {
	var former, newer *election.Roster
	var back, done bool
	for _, x := range w.rosters {
		holds := func(id election.PeerID) bool {
			return slices.ContainsFunc(w.agents, func(a rosterAgent) bool { return a.id == id && version(a.held) == x.Version })
		}
		accepted := func(id election.PeerID) bool {
			return slices.ContainsFunc(w.agents, func(a rosterAgent) bool { return a.id == id && slices.Contains(a.accepted, x.Version) })
		}
		isNew := !x.Joint() && slices.Equal(x.Voters, votersNamed(w.o.To))
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
	}
	return nil
}

type rosterStep = step[*rosterWorld]

func (w *rosterWorld) steps() (steps []rosterStep) {
	for i := range w.agents {
		a := &w.agents[i]
		if a.held.Has(a.id) && int(w.ballots) < w.o.Ballots {
			steps = append(steps, rosterStep{fmt.Sprintf("%s seeks ballot %d at %v", a.id, w.ballots+1, a.held.Version), func(w *rosterWorld) {
				w.ballots++
				w.agents[i].drives = nil // it has stopped driving, or never drove
				w.agents[i].seeks = &rosterBallot{term: w.ballots, roster: w.agents[i].held}
			}})
		}
		if a.seeks != nil {
			steps = append(steps, w.votes(i)...)
		}
		if a.drives != nil {
			steps = append(steps, w.driving(i)...)
		}
		steps = append(steps, w.rostersTo(i)...)
	}
	return steps
}

// votes returns the steps by which voters grant agent i's ballot (V2, V3): only at the ballot's
// version, and only a term above the voter's record.
func (w *rosterWorld) votes(i int) (steps []rosterStep) {
	b := w.agents[i].seeks
	for x := range w.agents {
		v := &w.agents[x]
		if version(v.held) != b.roster.Version || !b.roster.Has(v.id) || v.term >= b.term {
			continue
		}
		steps = append(steps, rosterStep{fmt.Sprintf("%s votes for ballot %d", v.id, b.term), func(w *rosterWorld) {
			a, b := &w.agents[i], w.agents[i].seeks
			w.agents[x].term = b.term
			b.votes = append(b.votes, w.agents[x].id)
			if quorum.Confirmed(b.roster, func(id election.PeerID) bool { return slices.Contains(b.votes, id) }) {
				a.seeks = nil
				w.begin(a, b)
			}
		}})
	}
	return steps
}

// begin makes an elected agent the driver, from the roster that it holds then.
func (w *rosterWorld) begin(a *rosterAgent, b *rosterBallot) {
	switch {
	case a.held.Joint():
		a.drives = quorum.InheritChange(b.term, drift, a.held, b.roster)
	case a.held.Version == w.rosters[0].Version:
		a.drives = quorum.NewDriver(b.term, drift, a.held, votersNamed(w.o.To))
	default:
		return // the change is done
	}
	a.begun = fmt.Sprint(b.term, a.held.Version, b.roster.Version)
	w.rosters = append(w.rosters, a.drives.Proposal())
}

// driving returns what a driver may do next. The driver learns of all acceptances when it acts. If it missed
// one, it would only act later, and the search has every delay anyway.
func (w *rosterWorld) driving(i int) []rosterStep {
	next := func(back bool) func(w *rosterWorld) {
		return func(w *rosterWorld) {
			d := w.agents[i].drives
			if back {
				d.GoBack()
			}
			for x := range w.agents {
				if v := &w.agents[x]; slices.Contains(v.accepted, d.Proposal().Version) {
					d.Accept(0, v.id, election.RosterAccept{Driver: d.Ballot, Version: d.Proposal().Version})
				}
			}
			if d.Advance(0) {
				w.rosters = append(w.rosters, d.Proposal())
			}
		}
	}
	steps := []rosterStep{{fmt.Sprintf("%s goes on", w.agents[i].id), next(false)}}
	if !w.agents[i].drives.Back() { // the driver itself refuses once it is too late to go back
		steps = append(steps, rosterStep{fmt.Sprintf("%s goes back", w.agents[i].id), next(true)})
	}
	return steps
}

// rostersTo returns the steps by which agent x accepts a roster from a driver (R1), or takes
// one over from another agent (R2).
func (w *rosterWorld) rostersTo(x int) (steps []rosterStep) {
	v := &w.agents[x]
	for _, r := range w.rosters[1:] {
		told := slices.ContainsFunc(w.agents, func(a rosterAgent) bool { return version(a.held) == r.Version })
		if r.Version.Before(version(v.held)) {
			continue
		}
		if v.term <= r.Version.Driver && !slices.Contains(v.accepted, r.Version) {
			steps = append(steps, rosterStep{fmt.Sprintf("%s accepts %s", v.id, messages.Roster(r)), func(w *rosterWorld) {
				v := &w.agents[x]
				v.held, v.term = r, r.Version.Driver
				v.accepted = append(v.accepted, r.Version)
			}})
		}
		if told && version(v.held) != r.Version {
			steps = append(steps, rosterStep{fmt.Sprintf("%s receives %s", v.id, messages.Roster(r)), func(w *rosterWorld) { w.agents[x].held = r }})
		}
	}
	return steps
}
