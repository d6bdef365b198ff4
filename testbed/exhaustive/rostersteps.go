package exhaustive

import (
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/testbed/messages"
)

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

// driving returns what a driver may do next. It learns of all acceptances when it acts: not to
// have learnt of one has the same effect as not to act on it.
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
	if !w.agents[i].drives.Back() { // the driver itself knows whether it is too late
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
