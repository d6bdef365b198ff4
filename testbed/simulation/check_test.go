package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// drivers is a world in which p0 has claimed the roster election for a second. The returned
// function makes p1 claim it too.
func drivers(t *testing.T) (w *world, second func()) {
	t.Helper()
	w = newWorld(Options{Seed: 1, Voters: 3})
	w.plan.quorum = true
	claim := func(number int, term election.Term) {
		a := w.numbered(number)
		w.checkSend(a, a.clock.at(w.Now), election.Envelope{Message: election.Heartbeat{
			Claims: []election.Claim{{Election: election.RosterElection, Term: term, Remaining: time.Second}}}})
	}
	claim(0, 1)
	return w, func() { claim(1, 2) }
}

// An agent without a connection sends nothing when it stops leading the roster election. Only its
// own elector shows that.
func TestADriverThatIsAloneEndsWhenItsElectorSaysSo(t *testing.T) {
	w, second := drivers(t)
	a := w.numbered(0)
	w.checkDriving(a, a.clock.at(w.Now), 0, 0)
	second()
	if w.violation != nil {
		t.Error(w.violation)
	}
}

func TestTwoDriversAtOnceAreFound(t *testing.T) {
	w, second := drivers(t)
	second()
	if w.violation == nil || w.violation.Rule != "G1" || !strings.Contains(w.violation.What, "_roster") {
		t.Errorf("got %v, want a violation of G1", w.violation)
	}
}

// A driver that no other agent can hear also counts as leading.
func TestADriverThatIsAloneIsFound(t *testing.T) {
	w, second := drivers(t)
	a := w.numbered(0)
	local := a.clock.at(w.Now)
	w.checkDriving(a, local, 0, 0)
	w.checkDriving(a, local, 1, local.Add(time.Second))
	second()
	if w.violation == nil || w.violation.Rule != "G1" {
		t.Errorf("got %v, want a violation of G1", w.violation)
	}
}

// The release of an earlier term does not end the present leadership.
func TestAnAttemptGivenUpEndsNoDriver(t *testing.T) {
	w, second := drivers(t)
	a := w.numbered(0)
	w.checkSend(a, a.clock.at(w.Now), election.Envelope{Message: election.Release{Election: election.RosterElection, Term: 3,
		Holder: a.holder()}})
	second()
	if w.violation == nil || w.violation.Rule != "G1" {
		t.Errorf("got %v, want a violation of G1", w.violation)
	}
}

// TestALeaderIsPromisedOnlyWhereEverybodyCanHearOfTheRoster: the only voter was replaced, and an
// observer missed that change.
func TestALeaderIsPromisedOnlyWhereEverybodyCanHearOfTheRoster(t *testing.T) {
	roster := func(counter uint64, voters ...int) *election.Roster {
		r := &election.Roster{Cluster: "x", Version: election.Version{Counter: counter}}
		for _, v := range voters {
			r.Voters = append(r.Voters, voter(v))
		}
		return r
	}
	for name, c := range map[string]struct {
		held     [3]*election.Roster // by agent; 2 is an observer
		lost     int                 // this agent has lost its disk
		promised bool
	}{
		"all hold it":                           {[3]*election.Roster{roster(2, 1), roster(2, 1), roster(2, 1)}, 0, true},
		"the observer knows the replaced voter": {[3]*election.Roster{roster(2, 1), roster(2, 1), roster(1, 0)}, -1, true},
		"and that one is lost":                  {[3]*election.Roster{nil, roster(2, 1), roster(1, 0)}, 0, false},
		"it has none":                           {[3]*election.Roster{nil, roster(2, 1), nil}, 0, true},
		"it hears of it in two steps":           {[3]*election.Roster{roster(2, 0, 1), roster(3, 1), roster(1, 0)}, -1, true},
		"the voter is lost":                     {[3]*election.Roster{roster(2, 1), nil, roster(2, 1)}, 1, false},
	} {
		w := newWorld(Options{Seed: 1, Voters: 3})
		w.plan.quorum = true
		for i, a := range w.agents {
			a.disk.state.Roster = c.held[i]
			if i == c.lost {
				a.peer += ".1"
			}
		}
		if w.promised() != c.promised {
			t.Errorf("%s: promised %t, want %t", name, !c.promised, c.promised)
		}
	}
}

// TestAnAgentHasMetItsFormerClusterWhereAVoterOfItIsConnected: a connected observer does not count.
// It may be all that is left of the former cluster.
func TestAnAgentHasMetItsFormerClusterWhereAVoterOfItIsConnected(t *testing.T) {
	for name, c := range map[string]struct {
		teller     int
		told, want bool
	}{
		"a voter":                 {1, true, true},
		"an observer":             {2, true, false},
		"a voter not told of yet": {1, false, false},
	} {
		w := newWorld(Options{Seed: 1, Voters: 3})
		a, b := w.agents[0], w.agents[c.teller]
		former := &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}, Voters: []election.Voter{voter(0), voter(1)}}
		a.peer += ".1"
		a.own = w.logs
		a.disk.state.Roster = &election.Roster{Cluster: "y", Version: election.Version{Counter: 1}, Voters: []election.Voter{{Name: a.name, Peer: a.peer}}}
		b.disk.state.Roster = former
		a.alive, b.alive = true, true
		conn := w.conns[a.id][b.id]
		conn.up, conn.ends = true, [2]end{{told: true}, {told: c.told}}
		if met := w.formerOf(a) == b; met != c.want {
			t.Errorf("%s: met %t, want %t", name, met, c.want)
		}
	}
}

// TestAnAgentThatLostItsDiskBelongsToNoCluster: before the loss it may have joined another agent's
// cluster. If it began alone after that, it would form a second cluster with the same terms.
func TestAnAgentThatLostItsDiskBelongsToNoCluster(t *testing.T) {
	w := newWorld(Options{Seed: 1, Voters: 3})
	a := w.agents[0]
	a.own = w.logs
	w.takeDisk(a)
	if w.config(a).Alone {
		t.Error("begins alone though nobody has it do so")
	}
}
