package transport

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/transport/inbox"
)

// Whatever is put, and however seldom events are taken, each peer's events are consistent, and the
// last one is true.
func TestTheMailboxKeepsStateAndItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		box := newMailbox()
		peers := []election.PeerID{"p", "q"}
		is, told := map[election.PeerID]election.LineageID{}, map[election.PeerID]election.LineageID{}
		serial, last := 0, -1
		take := func() bool {
			e, ok := box.take()
			switch e := e.(type) {
			case Connected:
				if told[e.Peer] != 0 {
					t.Fatalf("%s connected twice", e.Peer)
				}
				told[e.Peer] = e.Hello.Lineage
			case Lost:
				if told[e.Peer] == 0 {
					t.Fatalf("%s lost, not connected", e.Peer)
				}
				told[e.Peer] = 0
			case Message:
				if told[e.Peer] == 0 {
					t.Fatalf("message from %s, not connected", e.Peer)
				}
				if n := number(e.Message); n <= last {
					t.Fatalf("message %d after %d", n, last)
				} else {
					last = n
				}
			}
			return ok
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			p := rapid.SampledFrom(peers).Draw(t, "peer")
			serial++
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what == 0:
				if is[p] != 0 {
					box.put(Lost{Peer: p, Err: errReset})
				}
				is[p] = election.LineageID(serial)
				box.put(Connected{Peer: p, Hello: Hello{Lineage: is[p]}})
			case what == 1 && is[p] != 0:
				is[p] = 0
				box.put(Lost{Peer: p, Err: errReset})
			case what == 2:
				take()
			case what == 3:
				box.put(Refused{Peer: p, Err: errors.New("no")})
			case is[p] != 0:
				box.put(Message{Peer: p, Message: note(serial)})
			}
		}
		if n := box.waiting.Waiting(); n > len(peers)*(inbox.PerPeer+2)+inboxRefusals {
			t.Fatalf("%d events wait", n)
		}
		for take() {
		}
		for _, p := range peers {
			if told[p] != is[p] {
				t.Fatalf("%s: told %v, is %v", p, told[p], is[p])
			}
		}
		if n := box.waiting.Waiting(); n != 0 || box.refusals != 0 {
			t.Fatalf("an empty mailbox counts %d, %d", n, box.refusals)
		}
	})
}

func TestATalkativePeerDoesNotCrowdOutTheOthers(t *testing.T) {
	box := newMailbox()
	for i := range 10 * inbox.PerPeer {
		if took := box.put(Message{Peer: "loud", Message: note(i)}); took != (i < inbox.PerPeer) {
			t.Fatalf("message %d: %v", i, took)
		}
	}
	if !box.put(Message{Peer: "quiet", Message: note(1)}) {
		t.Error("the quiet peer is not heard")
	}
	for i := range 10 * inboxRefusals {
		if took := box.put(Refused{Peer: election.PeerID(fmt.Sprint(i))}); took != (i < inboxRefusals) {
			t.Fatalf("refusal %d: %v", i, took)
		}
	}
	if !box.put(Connected{Peer: "quiet"}) || !box.put(Lost{Peer: "loud"}) {
		t.Error("state was refused")
	}
}
