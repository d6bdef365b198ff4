package selectiontest

import (
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
)

// remembering is a selector that reports how many things about other agents it holds in memory.
type remembering interface{ Remembered() int }

// strangers are the peers that drawn calls and messages may come from or be about.
var strangers = []election.PeerID{"self", "a", "b", "c", "d", "e", "z", ""}

// latest bounds drawn instants, so that adding a timeout to them does not overflow.
const latest = 1 << 60

// Anything checks one selector with arbitrary calls and messages, even invalid ones. The selector
// must not panic. It may hold perPeer things in memory for each candidate of the field, and for
// one more. In each call it may send two messages for each peer, and two more. It may nominate
// itself only when it can lead, and once a round. It must ask to be woken later than now.
func Anything(m Maker, perPeer int) func(*rapid.T) {
	return func(t *rapid.T) {
		s := m("self")
		now, nominee := election.Instant(0), false
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now += election.Instant(rapid.Int64Range(0, int64(300*time.Millisecond)).Draw(t, "pass"))
			f := drawField(t, now)
			v, isCall := call(t, s, now, f)
			nominee = nominee && s.Active()
			if !isCall {
				continue
			}
			check(t, s, now, f, v, perPeer)
			if v.Nominee && nominee {
				t.Fatalf("nominated twice in one round")
			}
			nominee = nominee || v.Nominee
		}
	}
}

func check(t *rapid.T, s contest.Selection, now election.Instant, f election.Field, v election.Verdict, perPeer int) {
	if v.Nominee && (!f.Able || f.Leads != nil) {
		t.Fatalf("nominated, able %t, leads %v", f.Able, f.Leads)
	}
	if got, most := s.(remembering).Remembered(), perPeer*(len(f.Ranks)+1); got > most {
		t.Fatalf("remembers %d things of a field of %d", got, len(f.Ranks))
	}
	if most := 2*len(strangers) + 2; len(v.Send) > most {
		t.Fatalf("sends %d messages at once", len(v.Send))
	}
	if v.WakeAt <= now {
		t.Fatalf("asks to be woken at %d, and it is %d", v.WakeAt, now)
	}
	for _, e := range v.Send {
		if e.To == "self" || e.To == "" || e.Message == nil {
			t.Fatalf("sends %v", e)
		}
	}
}

func call(t *rapid.T, s contest.Selection, now election.Instant, f election.Field) (election.Verdict, bool) {
	switch rapid.IntRange(0, 9).Draw(t, "call") {
	case 0:
		return s.Start(now, f), true
	case 1:
		return s.Tick(now, f), true
	case 2:
		s.StandBack(now, f, drawRank(t))
	case 3:
		s.Stop()
	case 4:
		s.Confirmed(f, election.Leadership{Leader: drawHolder(t), Term: drawTerm(t)})
		s.Nominated(f, func(election.PeerID) bool { return false })
	default:
		return s.Receive(now, f, drawPeer(t), drawMessage(t)), true
	}
	return election.Verdict{}, false
}

func drawPeer(t *rapid.T) election.PeerID { return rapid.SampledFrom(strangers).Draw(t, "peer") }

func drawTerm(t *rapid.T) election.Term {
	return election.Term(rapid.SampledFrom([]uint64{0, 1, 2, 3, 1<<64 - 1}).Draw(t, "term"))
}

func drawHolder(t *rapid.T) election.Holder {
	return election.Holder{Peer: drawPeer(t), Lineage: election.LineageID(rapid.IntRange(0, 2).Draw(t, "boot"))}
}

func drawRank(t *rapid.T) election.Rank {
	return election.Rank{
		Priority: rapid.IntRange(-1, 3).Draw(t, "priority"),
		JoinedAt: rapid.Int64Range(-1, 2).Draw(t, "joined"),
		Peer:     drawPeer(t),
	}
}

// drawField draws a field with at most one entry for each peer, its ranks in any order.
func drawField(t *rapid.T, now election.Instant) election.Field {
	f := election.Field{Self: drawRank(t), Able: rapid.IntRange(0, 3).Draw(t, "able") > 0}
	f.Self.Peer = "self"
	for _, p := range strangers {
		if p != "" && (p != "self" || f.Able) && rapid.Bool().Draw(t, "in the field") {
			r := drawRank(t)
			r.Peer = p
			f.Ranks = append(f.Ranks, r)
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "leads") == 0 {
		f.Leads = &election.Leadership{Leader: election.Holder{Peer: "self"}, Term: drawTerm(t)}
	}
	f.Patience = rapid.SampledFrom([]election.Instant{
		0, -latest, now, now.Add(time.Second), latest, election.Never,
	}).Draw(t, "patience")
	return f
}

// drawMessage draws a message of either algorithm. Now and then the message is about another
// election or has nothing to do with selection.
func drawMessage(t *rapid.T) election.Message {
	name := rapid.SampledFrom([]election.Name{Election, Election, Election, "other"}).Draw(t, "election")
	number := rapid.SampledFrom([]uint64{0, 1, 2, 3, 1<<64 - 1}).Draw(t, "round")
	round := election.RoundID{Origin: drawPeer(t), Number: number}
	best := drawRank(t)
	if rapid.Bool().Draw(t, "own token") {
		best.Peer = round.Origin
	}
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return election.BullyElection{Election: name, Round: number, Rank: best}
	case 1:
		return election.BullyAnswer{Election: name, Round: number}
	case 2:
		return election.BullyDecline{Election: name, Round: number}
	case 3:
		return election.BullyCoordinator{Election: name, Term: drawTerm(t), Leader: drawHolder(t)}
	case 4:
		return election.RingElection{Election: name, Round: round, Best: best}
	case 5:
		return election.RingAck{Election: name, Round: round, Best: best.Peer}
	case 6:
		return election.RingElected{Election: name, Term: drawTerm(t), Leader: drawHolder(t)}
	}
	return rapid.SampledFrom([]election.Message{nil, election.Heartbeat{}}).Draw(t, "foreign")
}
