package bully_test

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/bully"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/selectiontest"
)

const (
	answerTimeout = selectiontest.Heartbeat
	patience      = election.Instant(time.Second)
)

func rank(peer election.PeerID, priority int) election.Rank {
	return election.Rank{Priority: priority, Peer: peer}
}

// middle is the field of agent m: e ranks higher, a lower.
func middle() election.Field {
	self := rank("m", 5)
	return election.Field{
		Self: self, Able: true, Patience: patience,
		Ranks: []election.Rank{rank("e", 9), self, rank("a", 1)},
	}
}

func newBully(t *testing.T) *bully.Bully {
	t.Helper()
	return bully.New(selectiontest.Election, "m", selectiontest.Heartbeat, 0)
}

// TestFactsDiffer: two agents each believe that the other ranks higher. Exactly one goes on,
// because both compare the ranks that the two report about themselves.
func TestFactsDiffer(t *testing.T) {
	b := newBully(t)
	f := middle()
	claim := election.BullyElection{Election: selectiontest.Election, Round: 3, Rank: rank("a", 7)}
	v := b.Receive(0, f, "a", claim) // the field still ranks a at 1
	if len(v.Send) != 1 {
		t.Fatalf("sends %v", v.Send)
	}
	if m, ok := v.Send[0].Message.(election.BullyDecline); !ok || m.Round != 3 {
		t.Errorf("sends %v, want a Decline", v.Send)
	}
	if v.WakeAt != patience {
		t.Errorf("waits until %d for the round of a better one, want %d", v.WakeAt, patience)
	}
}

// TestAnnouncementStartsNothing shows that an idle agent stays idle.
func TestAnnouncementStartsNothing(t *testing.T) {
	b := newBully(t)
	b.Receive(0, middle(), "e", election.BullyCoordinator{Election: selectiontest.Election, Term: 9, Leader: election.Holder{Peer: "e"}})
	if b.Active() {
		t.Error("active after a Coordinator")
	}
}

// TestOtherElection shows that messages of another election change nothing.
func TestOtherElection(t *testing.T) {
	for _, m := range []election.Message{
		election.BullyElection{Election: "other", Round: 1, Rank: rank("e", 9)},
		election.BullyAnswer{Election: "other", Round: 1},
		election.BullyAnswer{Election: "other"},
		election.BullyDecline{Election: "other", Round: 1},
		election.BullyCoordinator{Election: "other", Leader: election.Holder{Peer: "e"}},
	} {
		b := newBully(t)
		b.Start(0, middle())
		v := b.Receive(1, middle(), "e", m)
		if len(v.Send) > 0 || v.Nominee || v.WakeAt != election.Instant(answerTimeout) {
			t.Errorf("%T of another election: %+v", m, v)
		}
	}
}

// TestWaitIsProlongedOnce shows that an agent that repeats its messages can't prolong another's
// wait, even though f.Patience moves on with time.
func TestWaitIsProlongedOnce(t *testing.T) {
	b := newBully(t)
	f := middle()
	f.Patience = election.Instant(300 * time.Millisecond)
	b.StandBack(0, f, rank("e", 9))
	first := b.Tick(0, f).WakeAt
	for now := election.Instant(time.Millisecond); now < first; now = now.Add(10 * time.Millisecond) {
		f.Patience = now.Add(300 * time.Millisecond)
		b.StandBack(now, f, rank("e", 9))
		b.Receive(now, f, "e", election.BullyAnswer{Election: selectiontest.Election})
		if v := b.Tick(now, f); v.WakeAt != first {
			t.Fatalf("waits until %d, at first until %d", v.WakeAt, first)
		}
	}
	f.Patience = first.Add(300 * time.Millisecond)
	b.StandBack(first-1, f, rank("g", 10)) // another agent, not in the field
	if v := b.Tick(first-1, f); v.WakeAt != f.Patience {
		t.Errorf("waits until %d for another one, want %d", v.WakeAt, f.Patience)
	}
}

// TestPatienceAlreadyOver shows that a wait lasts at least an answer timeout. Otherwise each Answer
// would end in a new round at once.
func TestPatienceAlreadyOver(t *testing.T) {
	b := newBully(t)
	f := middle()
	now := 2 * patience
	b.Start(now, f)
	v := b.Receive(now, f, "e", election.BullyAnswer{Election: selectiontest.Election, Round: 1})
	if v.WakeAt != now.Add(answerTimeout) || len(v.Send) > 0 {
		t.Errorf("verdict %+v, want a wait of %s", v, answerTimeout)
	}
}

// TestNomineeStaysNominee shows that only the elector ends a nomination: a better rank, a late
// Answer and a Coordinator do not.
func TestNomineeStaysNominee(t *testing.T) {
	b := newBully(t)
	f := middle()
	b.Start(0, f)
	now := election.Instant(answerTimeout)
	if v := b.Tick(now, f); !v.Nominee {
		t.Fatalf("verdict %+v, want nominee", v)
	}
	b.StandBack(now, f, rank("e", 9))
	b.Receive(now, f, "e", election.BullyAnswer{Election: selectiontest.Election, Round: 1})
	b.Receive(now, f, "e", election.BullyCoordinator{Election: selectiontest.Election, Leader: election.Holder{Peer: "e"}})
	if v := b.Tick(2*patience, f); v.Nominee || v.WakeAt != election.Never || !b.Active() {
		t.Errorf("verdict %+v, active %t", v, b.Active())
	}
	b.Stop()
	if b.Active() {
		t.Error("active after Stop")
	}
}

// TestStandBackForUnknownEndsWithTime shows that the field does not cut short the wait for an agent
// that is not in the field.
func TestStandBackForUnknownEndsWithTime(t *testing.T) {
	b := newBully(t)
	f := middle()
	b.StandBack(0, f, rank("g", 10))
	if v := b.Tick(1, f); v.WakeAt != patience || len(v.Send) > 0 {
		t.Errorf("verdict %+v, want a wait until %d", v, patience)
	}
	if v := b.Tick(patience, f); len(v.Send) != 1 {
		t.Errorf("verdict %+v, want an Election to e", v)
	}
}

// TestStandsBackOnlyForBetter shows that no agent waits for a worse rank.
func TestStandsBackOnlyForBetter(t *testing.T) {
	b := newBully(t)
	b.StandBack(0, middle(), rank("a", 1))
	b.StandBack(0, middle(), rank("m", 9)) // this agent's own former rank
	if b.Active() {
		t.Error("stands back for a worse rank or for itself")
	}
}

// TestARoundEndsInsteadOfBeginningAgainWhereTheFieldIsFull: while the field is closed, the end of a
// wait starts no new round, and neither does another agent's Election.
func TestARoundEndsInsteadOfBeginningAgainWhereTheFieldIsFull(t *testing.T) {
	b := newBully(t)
	f := middle()
	b.Start(0, f)
	b.Receive(0, f, "e", election.BullyAnswer{Election: selectiontest.Election, Round: 1})
	f.Closed = true
	if v := b.Tick(patience-1, f); !b.Active() || len(v.Send) != 0 {
		t.Fatalf("ends the wait too early, or sends %v", v.Send)
	}
	if v := b.Tick(patience, f); b.Active() || len(v.Send) != 0 {
		t.Errorf("begins again: sends %v", v.Send)
	}
	v := b.Receive(patience, f, "a", election.BullyElection{Election: selectiontest.Election, Round: 3, Rank: rank("a", 1)})
	if _, answers := v.Send[0].Message.(election.BullyAnswer); b.Active() || len(v.Send) != 1 || !answers {
		t.Errorf("asked by a worse one, it begins, or sends %v, want an Answer alone", v.Send)
	}
}
