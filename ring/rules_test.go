package ring_test

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/ring"
	"github.com/doyen-election/doyen/testbed/selectiontest"
)

const patience = election.Instant(time.Second)

func rank(peer election.PeerID, priority int) election.Rank {
	return election.Rank{Priority: priority, Peer: peer}
}

// middle is the field of agent m: e ranks higher, a lower. The ring is a, e, m.
func middle() election.Field {
	self := rank("m", 5)
	return election.Field{
		Self: self, Able: true, Patience: patience,
		Ranks: []election.Rank{rank("e", 9), self, rank("a", 1)},
	}
}

func token(best election.Rank, number uint64) election.RingElection {
	return election.RingElection{
		Election: selectiontest.Election, Best: best,
		Round: election.RoundID{Origin: best.Peer, Number: number},
	}
}

func newRing(t *testing.T) *ring.Ring {
	t.Helper()
	return ring.New(selectiontest.Election, "m", selectiontest.Heartbeat, 0)
}

// tokens returns the tokens that the verdict sends, and the receiver of the first.
func tokens(v election.Verdict) (sent []election.RingElection, to election.PeerID) {
	for _, e := range v.Send {
		if m, ok := e.Message.(election.RingElection); ok {
			if len(sent) == 0 {
				to = e.To
			}
			sent = append(sent, m)
		}
	}
	return sent, to
}

// TestStaleOwnToken shows that an agent's own token makes it no nominee if the token is of an
// earlier round, or comes back while the agent has no round.
func TestStaleOwnToken(t *testing.T) {
	r := newRing(t)
	f := middle()
	own := func(number uint64) election.Verdict {
		return r.Receive(1, f, "e", token(f.Self, number))
	}
	r.Start(0, f)
	r.Stop()
	if v := own(1); v.Nominee || r.Active() {
		t.Errorf("idle: %+v", v)
	}
	r.Start(1, f)
	if v := own(1); v.Nominee {
		t.Errorf("in the second round: %+v", v)
	}
	if v := own(2); !v.Nominee {
		t.Errorf("token of the second round: %+v", v)
	}
	if v := own(2); v.Nominee {
		t.Errorf("repeated: %+v", v)
	}
}

// TestRankChangedOnTheWay shows that a token with a former rank makes no nominee, because the
// others compared the former rank.
func TestRankChangedOnTheWay(t *testing.T) {
	r := newRing(t)
	f := middle()
	r.Start(0, f)
	former := f.Self
	f.Self = rank("m", 2)
	v := r.Receive(1, f, "e", token(former, 1))
	sent, _ := tokens(v)
	if v.Nominee || len(sent) != 1 || sent[0].Best != f.Self || sent[0].Round.Number != 2 {
		t.Errorf("verdict %+v, want a new token", v)
	}
}

// TestUnableTakesNothingHome: an agent becomes unable to lead while its token goes round. It is not
// nominated when the token comes back.
func TestUnableTakesNothingHome(t *testing.T) {
	r := newRing(t)
	f := middle()
	r.Start(0, f)
	f.Able, f.Ranks = false, []election.Rank{rank("e", 9), rank("a", 1)}
	if v := r.Receive(1, f, "e", token(f.Self, 1)); v.Nominee || r.Active() {
		t.Errorf("verdict %+v, active %t", v, r.Active())
	}
}

// TestTokenOfStrangerDies shows that a token is never passed on if its best candidate is not in the
// field. It is acknowledged, and then replaced or dropped.
func TestTokenOfStrangerDies(t *testing.T) {
	r := newRing(t)
	f := middle()
	for i, want := range []int{1, 0} { // first replaced, then dropped
		v := r.Receive(1, f, "e", token(rank("z", 99), uint64(i)))
		sent, _ := tokens(v)
		if len(sent) != want || want == 1 && sent[0].Best != f.Self {
			t.Errorf("token %d: sends %v", i, v.Send)
		}
		if _, ok := v.Send[0].Message.(election.RingAck); !ok {
			t.Errorf("token %d is not acknowledged: %v", i, v.Send)
		}
	}
	f.Able = false
	if sent, _ := tokens(r.Receive(1, f, "e", token(rank("z", 99), 7))); len(sent) > 0 {
		t.Errorf("unable, and passes on %v", sent)
	}
}

// TestRestartedOrigin: an agent restarts and numbers its rounds from the start again. Its new token
// does not count as a repetition.
func TestRestartedOrigin(t *testing.T) {
	r := newRing(t)
	f := middle()
	former, now := rank("e", 9), rank("e", 9)
	now.JoinedAt = 5
	r.Receive(1, f, "a", token(former, 40))
	if sent, _ := tokens(r.Receive(2, f, "a", token(now, 1))); len(sent) != 1 {
		t.Errorf("passes on %v, want the token of the restarted origin", sent)
	}
}

// TestForeignAck shows that only the candidate to which a token was sent can acknowledge it.
func TestForeignAck(t *testing.T) {
	r := newRing(t)
	f := middle()
	r.Start(0, f) // sends the token to a
	hop := election.Instant(hopTimeout)
	ack := election.RingAck{Election: selectiontest.Election, Round: election.RoundID{Origin: "m", Number: 1}, Best: "m"}
	if v := r.Receive(1, f, "e", ack); v.WakeAt != hop {
		t.Errorf("an ack of e: wakes at %d, want %d", v.WakeAt, hop)
	}
	ack.Round.Number = 2
	if v := r.Receive(1, f, "a", ack); v.WakeAt != hop {
		t.Errorf("an ack of another round: wakes at %d, want %d", v.WakeAt, hop)
	}
	ack.Round.Number = 1
	if v := r.Receive(1, f, "a", ack); v.WakeAt <= patience {
		t.Errorf("the ack of a: wakes at %d", v.WakeAt)
	}
}

// TestWaitsForTheBestHeardOf: an agent waits for one candidate, and passes on the token of a worse
// candidate. That does not prolong the wait.
func TestWaitsForTheBestHeardOf(t *testing.T) {
	r := newRing(t)
	f := middle()
	f.Ranks = append([]election.Rank{rank("z", 10)}, f.Ranks...)
	pass := func(best election.Rank) election.Instant {
		sent, to := tokens(r.Receive(1, f, "e", token(best, 1)))
		if len(sent) != 1 || to != "z" {
			t.Fatalf("passes %v on to %s", sent, to)
		}
		return r.Receive(1, f, "z", election.RingAck{
			Election: selectiontest.Election, Round: sent[0].Round, Best: best.Peer,
		}).WakeAt
	}
	first := pass(rank("z", 10))
	f.Patience = f.Patience.Add(time.Second)
	if got := pass(rank("e", 9)); got != first {
		t.Errorf("waits until %d, for the best until %d", got, first)
	}
}

// TestStandsBackOnlyForBetter shows that an agent does not wait for a worse rank, and that a
// repeated rank does not prolong its wait.
func TestStandsBackOnlyForBetter(t *testing.T) {
	r := newRing(t)
	f := middle()
	r.StandBack(0, f, rank("a", 1))
	r.StandBack(0, f, rank("m", 9))
	if r.Active() {
		t.Fatal("stands back for a worse rank or for itself")
	}
	r.StandBack(0, f, rank("e", 9))
	f.Patience = 2 * patience
	r.StandBack(1, f, rank("e", 9))
	if v := r.Tick(1, f); v.WakeAt != patience {
		t.Errorf("waits until %d, want %d", v.WakeAt, patience)
	}
	r.StandBack(2, f, rank("g", 10))
	if v := r.Tick(2, f); v.WakeAt != 2*patience {
		t.Errorf("waits until %d for a better one still, want %d", v.WakeAt, 2*patience)
	}
}

// TestStopForgetsTheOwnToken shows that no token is sent again after its round has ended.
func TestStopForgetsTheOwnToken(t *testing.T) {
	r := newRing(t)
	f := middle()
	r.Start(0, f)
	r.Stop()
	if v := r.Tick(patience, f); len(v.Send) > 0 || v.Nominee || v.WakeAt != election.Never {
		t.Errorf("verdict %+v after Stop", v)
	}
}

// TestOtherElection shows that messages of another election, and tokens whose
// origin is not their best, change nothing.
func TestOtherElection(t *testing.T) {
	foreign := token(rank("e", 9), 1)
	foreign.Election = "other"
	mixed := token(rank("e", 9), 1)
	mixed.Round.Origin = "a"
	for _, m := range []election.Message{
		foreign, mixed,
		election.RingAck{Election: "other", Round: election.RoundID{Origin: "m", Number: 1}, Best: "m"},
		election.RingElected{Election: "other", Term: 9, Leader: election.Holder{Peer: "e"}},
	} {
		r := newRing(t)
		r.Start(0, middle())
		if v := r.Receive(1, middle(), "a", m); len(v.Send) > 0 || v.WakeAt != election.Instant(hopTimeout) {
			t.Errorf("%+v: %+v", m, v)
		}
	}
}

// TestEntersAgainOnceTheBestIsGone: the candidate for which an agent waited has left. When a worse
// token arrives, the agent may send its own again.
func TestEntersAgainOnceTheBestIsGone(t *testing.T) {
	r := newRing(t)
	f := middle()
	without := f
	f.Ranks = append([]election.Rank{rank("z", 10)}, f.Ranks...)
	r.Receive(0, f, "e", token(rank("z", 10), 1))
	if sent, _ := tokens(r.Receive(1, f, "e", token(rank("a", 1), 1))); len(sent) > 0 {
		t.Errorf("sends %v while the best is there", sent)
	}
	r.Tick(2, without)
	sent, _ := tokens(r.Receive(3, without, "e", token(rank("a", 1), 2)))
	if len(sent) != 1 || sent[0].Best != f.Self {
		t.Errorf("sends %v, want its own token", sent)
	}
}

// TestYieldingDropsTheOwnToken shows that an agent that yields to a better token does not send its
// own token again.
func TestYieldingDropsTheOwnToken(t *testing.T) {
	r := newRing(t)
	f := middle()
	r.Start(0, f)
	r.Receive(1, f, "e", token(rank("e", 9), 1))
	v := r.Tick(election.Instant(2*hopTimeout), f)
	for sent, to := tokens(v); len(sent) > 0; sent = sent[1:] {
		if sent[0].Best == f.Self {
			t.Errorf("sends its own token again, to %s", to)
		}
	}
}

// TestForgetsWhoLeft shows that nothing is remembered of candidates that have left.
func TestForgetsWhoLeft(t *testing.T) {
	r := newRing(t)
	f := middle()
	alone := f
	alone.Ranks = []election.Rank{f.Self}
	for i := range 100 {
		better := rank(election.PeerID("x"+string(rune('A'+i))), 10)
		f.Ranks = []election.Rank{better, f.Self}
		r.Receive(election.Instant(i), f, "e", token(better, 1))
	}
	if got := r.Remembered(); got > 3 {
		t.Errorf("remembers %d things of a field of 2", got)
	}
	r.Stop()
	r.Tick(patience, alone)
	if got := r.Remembered(); got != 0 {
		t.Errorf("remembers %d things of a field of 1", got)
	}
}

// TestARoundEndsInsteadOfBeginningAgainWhereTheFieldIsFull: while the field is closed, a lost token
// starts no new round, and neither does a worse token that arrives.
func TestARoundEndsInsteadOfBeginningAgainWhereTheFieldIsFull(t *testing.T) {
	r := newRing(t)
	f := middle()
	lost := r.Start(0, f).WakeAt
	r.Receive(0, f, "a", election.RingAck{Election: selectiontest.Election, Round: election.RoundID{Origin: "m", Number: 1}, Best: "m"})
	f.Closed = true
	lost = max(lost, r.Tick(0, f).WakeAt)
	if v := r.Tick(lost, f); r.Active() || len(v.Send) != 0 {
		t.Errorf("begins again: sends %v", v.Send)
	}
	v := r.Receive(lost, f, "a", token(rank("a", 1), 1))
	if sent, _ := tokens(v); r.Active() || len(sent) != 0 {
		t.Errorf("a worse token comes by, and it sends %v", sent)
	}
}
