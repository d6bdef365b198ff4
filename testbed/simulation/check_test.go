package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// drivers is a world in which p0 has claimed the roster election for a second,
// and a function by which p1 claims it too.
func drivers(t *testing.T) (w *world, second func()) {
	t.Helper()
	w = newWorld(Options{Seed: 1, Voters: 3})
	w.plan.quorum = true
	claim := func(number int, term election.Term) {
		a := w.numbered(number)
		w.checkSend(a, a.clock.at(w.now), election.Envelope{Message: election.Heartbeat{
			Claims: []election.Claim{{Election: election.RosterElection, Term: term, Remaining: time.Second}}}})
	}
	claim(0, 1)
	return w, func() { claim(1, 2) }
}

// An agent with no connection sends nothing when it stops leading the roster
// election: its own elector says so.
func TestADriverThatIsAloneEndsWhenItsElectorSaysSo(t *testing.T) {
	w, second := drivers(t)
	a := w.numbered(0)
	w.checkDriving(a, a.clock.at(w.now), 0, 0)
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

// A driver that nobody hears leads too.
func TestADriverThatIsAloneIsFound(t *testing.T) {
	w, second := drivers(t)
	a := w.numbered(0)
	local := a.clock.at(w.now)
	w.checkDriving(a, local, 0, 0)
	w.checkDriving(a, local, 1, local.Add(time.Second))
	second()
	if w.violation == nil || w.violation.Rule != "G1" {
		t.Errorf("got %v, want a violation of G1", w.violation)
	}
}

// A term that is given up is not the end of the one that is led.
func TestAnAttemptGivenUpEndsNoDriver(t *testing.T) {
	w, second := drivers(t)
	a := w.numbered(0)
	w.checkSend(a, a.clock.at(w.now), election.Envelope{Message: election.Release{Election: election.RosterElection, Term: 3,
		Holder: election.Holder{Peer: a.peer, Boot: a.boot}}})
	second()
	if w.violation == nil || w.violation.Rule != "G1" {
		t.Errorf("got %v, want a violation of G1", w.violation)
	}
}
