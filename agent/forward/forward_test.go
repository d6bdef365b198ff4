package forward_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/doyen-election/doyen/agent/forward"
	"github.com/doyen-election/doyen/election"
)

func everyone(election.PeerID) bool { return true }

// pair returns the desks of the agents a and b.
func pair(t *testing.T, serve func(context.Context, election.PeerID, election.Call) election.CallAnswer) (a, b *forward.Desk) {
	t.Helper()
	a = forward.New(func(to election.PeerID, m election.Message) bool {
		return to == "b" && b.Received("a", m)
	}, nil, everyone)
	b = forward.New(func(to election.PeerID, m election.Message) bool { return a.Received("b", m) }, serve, everyone)
	return a, b
}

func TestACallIsAnswered(t *testing.T) {
	a, _ := pair(t, func(_ context.Context, from election.PeerID, c election.Call) election.CallAnswer {
		return election.CallAnswer{Status: 200, Body: append([]byte(string(from)+" "+c.Path+" "), c.Body...)}
	})
	for _, body := range []string{"one", "two"} {
		got, err := a.Call(t.Context(), "b", election.Call{Method: "POST", Path: "/v1/drain", Body: []byte(body)})
		if err != nil || got.Status != 200 || string(got.Body) != "a /v1/drain "+body {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if _, err := a.Call(t.Context(), "c", election.Call{}); err == nil {
		t.Error("a call was made at an agent that can't be reached")
	}
}

func TestAnAnswerCountsOnceAndOnlyFromTheAgentThatWasAsked(t *testing.T) {
	asked := make(chan election.Call, 1)
	a := forward.New(func(_ election.PeerID, m election.Message) bool { asked <- m.(election.Call); return true }, nil, everyone)
	done := make(chan election.CallAnswer)
	go func() {
		got, _ := a.Call(t.Context(), "b", election.Call{})
		done <- got
	}()
	c := <-asked
	a.Received("c", election.CallAnswer{ID: c.ID, Status: 500})
	a.Received("b", election.CallAnswer{ID: c.ID + 1, Status: 500})
	a.Received("b", election.CallAnswer{ID: c.ID, Status: 200})
	a.Received("b", election.CallAnswer{ID: c.ID, Status: 500})
	if got := <-done; got.Status != 200 {
		t.Errorf("status %d", got.Status)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := a.Call(ctx, "b", election.Call{}); err == nil {
		t.Error("a call without an answer succeeded")
	}
}

// Five observers with slow calls once blocked every command that a voter forwarded.
func TestAFloodOfCallsIsBounded(t *testing.T) {
	hold, begun := make(chan struct{}), make(chan struct{}, 100)
	busy := 0
	b := forward.New(func(_ election.PeerID, m election.Message) bool {
		if m.(election.CallAnswer).Status == forward.Busy {
			busy++
		}
		return true
	}, func(context.Context, election.PeerID, election.Call) election.CallAnswer {
		begun <- struct{}{}
		<-hold
		return election.CallAnswer{Status: 200}
	}, func(id election.PeerID) bool { return id == "a" || id == "c" })
	for id := range uint64(100) {
		b.Received("a", election.Call{ID: id})
	}
	for range 4 {
		<-begun
	}
	if busy != 96 {
		t.Errorf("%d of 100 calls of one agent were refused, want 96", busy)
	}
	for id := range uint64(100) {
		b.Received(election.PeerID(fmt.Sprint("observer-", id/10)), election.Call{ID: id})
	}
	<-begun
	<-begun
	if busy != 96+98 {
		t.Errorf("%d calls were refused: observers have %d places, want 2", busy, 100-(busy-96))
	}
	b.Received("c", election.Call{})
	<-begun // another voter is not kept out
	close(hold)
	if b.Received("a", election.Heartbeat{}) {
		t.Error("it took a heartbeat for a call")
	}
}
