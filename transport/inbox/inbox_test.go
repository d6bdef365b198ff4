package inbox

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
)

func answer(i int) election.Message { return election.BullyAnswer{Round: uint64(i)} }

func beat(i int) election.Message { return election.Heartbeat{Send: election.SendID(i)} }

func ack(i int) election.Message { return election.HeartbeatAck{Send: election.SendID(i)} }

func ask(name election.Name, term election.Term) election.VoteRequest {
	return election.VoteRequest{Election: name, Term: term, Holder: election.Holder{Peer: "p", Lineage: 1}}
}

func giveBack(r election.VoteRequest) election.Message {
	return election.Release{Election: r.Election, Term: r.Term, Holder: r.Holder}
}

// drain takes everything.
func drain(b *Inbox) (all []Item) {
	for {
		i, ok := b.Take()
		if !ok {
			return all
		}
		all = append(all, i)
	}
}

func messages(items []Item) (all []election.Message) {
	for _, i := range items {
		all = append(all, i.Message)
	}
	return all
}

func expect(t *testing.T, b *Inbox, want ...election.Message) {
	t.Helper()
	got := messages(drain(b))
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("took %+v, want %+v", got, want)
	}
}

func same(a, b election.Message) bool { return number(a) == number(b) }

// number distinguishes the messages of the tests.
func number(m election.Message) [3]uint64 {
	switch m := m.(type) {
	case election.BullyAnswer:
		return [3]uint64{1, m.Round}
	case election.Heartbeat:
		return [3]uint64{2, uint64(m.Send)}
	case election.HeartbeatAck:
		return [3]uint64{3, uint64(m.Send)}
	case election.VoteRequest:
		return [3]uint64{4, uint64(m.Term), uint64(m.Send)}
	case election.Release:
		return [3]uint64{5, uint64(m.Term)}
	case election.Candidacies:
		return [3]uint64{6, m.Serial}
	}
	return [3]uint64{}
}

func TestHeartbeatsAndTheirAnswersAreTakenFirst(t *testing.T) {
	var b Inbox
	for i := range PerPeer {
		b.Put("p", answer(i))
	}
	if b.Put("p", answer(PerPeer)) {
		t.Error("a message too many has room")
	}
	if !b.Put("p", beat(1)) || !b.Put("p", ack(2)) || !b.Put("q", beat(3)) {
		t.Error("a heartbeat has no room behind votes")
	}
	got := messages(drain(&b))
	for i, want := range []election.Message{beat(1), ack(2), beat(3), answer(0), answer(1)} {
		if !same(got[i], want) {
			t.Errorf("message %d is %+v, want %+v", i, got[i], want)
		}
	}
	if len(got) != PerPeer+3 {
		t.Errorf("took %d messages", len(got))
	}
}

// While nobody leads, the number of messages of selection grows with the square of the number of agents. Votes end
// that, so they are taken first.
func TestVotesAreTakenBeforeWordsOfSelection(t *testing.T) {
	var b Inbox
	for i := range 10 {
		b.Put("q", answer(i))
	}
	b.Put("p", answer(10))
	b.Put("p", ask("x", 1))
	b.Put("q", ask("x", 2))
	b.Put("p", ack(1))
	got := messages(drain(&b))
	for i, want := range []election.Message{ack(1), ask("x", 1), ask("x", 2), answer(0), answer(1)} {
		if !same(got[i], want) {
			t.Errorf("message %d is %+v, want %+v", i, got[i], want)
		}
	}
}

func TestVotesDoNotKeepWordsOfSelectionWaitingForEver(t *testing.T) {
	var b Inbox
	b.Put("p", answer(1))
	for i := range 10 * inRow {
		b.Put("q", ask(election.Name([]byte{byte('a' + i%20)}), election.Term(i+1)))
		if item, _ := b.Take(); item.Peer == "p" {
			return
		}
	}
	t.Error("a peer that asks for votes without end is all that is heard")
}

// A vote is not taken after the end of its connection was taken.
func TestVotesStayOnTheirSideOfANote(t *testing.T) {
	var b Inbox
	for i := range 2 * inRow {
		b.Put("q", ask(election.Name([]byte{byte('a' + i)}), 1))
	}
	b.Put("p", answer(1))
	b.Put("p", ask("x", 1))
	b.Note("p", "lost")
	b.Put("p", ask("x", 2))
	lost := false
	for _, i := range drain(&b) {
		if i.Peer != "p" {
			continue
		}
		if r, asks := i.Message.(election.VoteRequest); asks && (r.Term == 2) != lost {
			t.Errorf("the request for term %d is on the wrong side of the end", r.Term)
		}
		lost = lost || i.Message == nil
	}
	if b.Waiting() != 0 || len(b.peers) > 2 {
		t.Errorf("%d entries of %d peers are left", b.Waiting(), len(b.peers))
	}
}

func TestTheNewestHeartbeatOfAPeerReplacesItsOlderOne(t *testing.T) {
	var b Inbox
	b.Put("p", beat(1))
	b.Put("q", beat(10))
	b.Put("p", ack(5))
	b.Put("p", beat(2))
	b.Put("p", beat(3))
	b.Put("p", ack(6))
	if b.Outdated() != 3 {
		t.Errorf("%d were replaced", b.Outdated())
	}
	expect(t, &b, beat(3), beat(10), ack(6))
}

func TestUrgentMessagesDoNotKeepTheOthersWaitingForEver(t *testing.T) {
	var b Inbox
	b.Put("p", answer(1))
	for i := range 10 * inRow {
		b.Put("q", beat(i))
		if item, _ := b.Take(); item.Peer == "p" {
			return
		}
	}
	t.Error("a peer that sends heartbeats without end is all that is heard")
}

func TestANewerRequestForAVoteTakesTheOlderOnesPlace(t *testing.T) {
	var b Inbox
	first, second := ask("x", 1), ask("x", 1)
	second.Send = 7
	b.Put("p", first)
	b.Put("p", ask("y", 1))
	b.Put("p", second)
	expect(t, &b, second, ask("y", 1))
}

func TestAVoteThatWasGivenBackIsNotAskedFor(t *testing.T) {
	var b Inbox
	asked := ask("x", 3)
	b.Put("p", asked)
	b.Put("p", giveBack(asked))
	b.Put("p", ask("x", 4))
	b.Put("p", giveBack(asked)) // late: it is about an earlier term
	expect(t, &b, giveBack(asked), ask("x", 4), giveBack(asked))
	b.Put("p", ask("x", 4))
	b.Put("p", giveBack(ask("x", 4))) // the vote may have been given
	expect(t, &b, giveBack(ask("x", 4)))
	b.Put("p", ask("y", 5))
	handedOver := giveBack(ask("y", 5)).(election.Release)
	handedOver.Target = "q"
	b.Put("p", handedOver) // its target matters
	expect(t, &b, handedOver)
}

func TestOnlyTheNewestListOfCandidaciesIsTaken(t *testing.T) {
	var b Inbox
	for serial := range uint64(3) {
		b.Put("p", election.Candidacies{Serial: serial})
	}
	expect(t, &b, election.Candidacies{Serial: 2})
}

// A note is the beginning or the end of a connection. A message must be taken on the same side of the
// note on which it was put.
func TestWhatIsUrgentStaysOnItsSideOfANote(t *testing.T) {
	var b Inbox
	b.Put("p", ask("x", 1))
	b.Note("p", "lost")
	b.Note("p", "connected")
	b.Put("p", beat(2))
	b.Put("p", ask("x", 2))
	var got []any
	for _, i := range drain(&b) {
		if i.Message == nil {
			got = append(got, i.Note)
			continue
		}
		got = append(got, number(i.Message))
	}
	want := []any{number(ask("x", 1)), "lost", "connected", number(beat(2)), number(ask("x", 2))}
	if !slices.Equal(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
}

// Whatever is put, and however seldom it is taken: messages that are not urgent come in the order in
// which they were put, what waits is bounded, and an empty inbox holds nothing.
func TestTheInboxKeepsOrderAndItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Inbox
		peers := []election.PeerID{"p", "q", "r"}
		put, took := map[election.PeerID]int{}, map[election.PeerID]int{}
		lives, lived := map[election.PeerID]int{}, map[election.PeerID]int{}
		take := func() bool {
			i, ok := b.Take()
			switch m := i.Message.(type) {
			case election.BullyAnswer:
				if int(m.Round) <= took[i.Peer] {
					t.Fatalf("answer %d of %s after %d", m.Round, i.Peer, took[i.Peer])
				}
				took[i.Peer] = int(m.Round)
			case election.Heartbeat:
				if int(m.Lineage) != lived[i.Peer] {
					t.Fatalf("a heartbeat of life %d of %s in life %d", m.Lineage, i.Peer, lived[i.Peer])
				}
			case nil:
				if ok {
					lived[i.Peer] = i.Note.(int)
				}
			}
			return ok
		}
		for n := range rapid.IntRange(0, 300).Draw(t, "steps") {
			p := rapid.SampledFrom(peers).Draw(t, "peer")
			name := election.Name(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "election"))
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0:
				put[p] = n + 1
				b.Put(p, answer(n+1))
			case 1:
				b.Put(p, election.Heartbeat{Lineage: election.LineageID(lives[p]), Send: election.SendID(n)})
			case 2:
				b.Put(p, ask(name, election.Term(n)))
			case 3:
				b.Put(p, giveBack(ask(name, election.Term(n-1))))
			case 4:
				lives[p]++
				b.Note(p, lives[p])
			case 5:
				b.Put(p, election.Candidacies{Serial: uint64(n)})
			default:
				take()
			}
			if most := len(peers)*(2*PerPeer+2) + 300; b.Waiting() > most {
				t.Fatalf("%d entries wait", b.Waiting())
			}
		}
		for take() {
		}
		for _, p := range peers {
			if took[p] != put[p] || lived[p] != lives[p] {
				t.Fatalf("%s: took up to %d of %d, in life %d of %d", p, took[p], put[p], lived[p], lives[p])
			}
		}
		for _, p := range peers {
			b.Note(p, lives[p])
		}
		for take() {
		}
		if b.Waiting() != 0 || len(b.peers) != 0 {
			t.Fatalf("an empty inbox holds %d entries, of %d peers", b.Waiting(), len(b.peers))
		}
	})
}

// A heartbeat that came with its connection waits behind the connection's note, and behind all that
// was put before. The next one does not.
func TestAHeartbeatAfterItsConnectionsNoteIsUrgent(t *testing.T) {
	var b Inbox
	b.Note("a", "connected")
	for i := range 100 {
		b.Note(election.PeerID(fmt.Sprint(i)), "connected")
	}
	b.Put("a", election.Heartbeat{Send: 1})
	if it, _ := b.Take(); it.Note == nil || it.Peer != "a" {
		t.Fatalf("the note does not come first: %+v", it)
	}
	b.Put("a", election.Heartbeat{Send: 2})
	it, _ := b.Take()
	if h, is := it.Message.(election.Heartbeat); !is || h.Send != 2 {
		t.Errorf("first comes %+v", it)
	}
	for {
		it, ok := b.Take()
		if !ok {
			return
		}
		if it.Message != nil {
			t.Errorf("taken too: %+v", it)
		}
	}
}
