package transport

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/transport/inbox"
)

func TestPeersMeetAndTalkInOrderBothWays(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	for _, way := range [][2]*Transport{{a, b}, {b, a}} {
		from, to := way[0], way[1]
		for i := range queueLength {
			if !from.Send(to.self, note(i)) {
				t.Fatalf("message %d not sent", i)
			}
		}
		for i := range queueLength {
			if m := await[Message](t, to); m.Peer != from.self || number(m.Message) != i {
				t.Fatalf("message %d: got %+v", i, m)
			}
		}
		if s := to.Stats(); s.BytesIn == 0 {
			t.Errorf("counted %+v", s)
		}
	}
}

func TestAHelloIsToldAsItWasSaid(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	a.SetPeers([]Peer{at(b), at(a), {ID: "not a peer ID", Addr: a.Addr()}, {ID: ids[1].id}})
	a.SetPeers([]Peer{at(b)})
	b.SetPeers([]Peer{at(a)})
	if c := await[Connected](t, a); c.Peer != b.self || c.Hello != helloOf("b", 2) {
		t.Errorf("got %+v", c)
	}
	if c := await[Connected](t, b); c.Peer != a.self || c.Hello != helloOf("a", 1) {
		t.Errorf("got %+v", c)
	}
}

func TestARefusalIsToldToBothSidesOnce(t *testing.T) {
	t.Parallel()
	for refuser := range 2 {
		t.Run([]string{"by the side that dials", "by the side that waits"}[refuser], func(t *testing.T) {
			t.Parallel()
			ids := identities(t, 2)
			configs := []Config{{Key: ids[0].key, Hello: helloOf("a", 1)}, {Key: ids[1].key, Hello: helloOf("b", 2)}}
			configs[refuser].Accept = func(_ election.PeerID, h Hello) error {
				return fmt.Errorf("lease %s of %q is not mine", h.Lease, h.Name)
			}
			a, b := start(t, configs[0]), start(t, configs[1])
			a.SetPeers([]Peer{at(b)})
			b.SetPeers([]Peer{at(a)})
			both := []*Transport{a, b}
			by, of := await[Refused](t, both[refuser]), await[Refused](t, both[1-refuser])
			name := []string{"a", "b"}
			want := fmt.Sprintf("lease 1.2s of %q is not mine", name[1-refuser])
			if by.ByPeer || by.Name != name[1-refuser] || by.Err.Error() != want || by.Peer != both[1-refuser].self || !by.Addr.IsValid() {
				t.Errorf("the refuser was told %+v", by)
			}
			if !of.ByPeer || of.Name != name[refuser] || of.Err.Error() != want || of.Peer != both[refuser].self {
				t.Errorf("the refused was told %+v", of)
			}
			eventually(t, "a second attempt", func() bool {
				return a.Stats().Dials >= 2 && b.Stats().Refusals["hello"]+b.Stats().Refusals["by_peer"] >= 2
			})
			select {
			case e := <-a.Events():
				t.Errorf("told again: %+v", e)
			case e := <-b.Events():
				t.Errorf("told again: %+v", e)
			default:
			}
		})
	}
}

func TestAStrangerIsNotLetInUntilItIsKnown(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	b.strangers.mu.Lock()
	b.strangers.grace = 100 * time.Millisecond
	b.strangers.mu.Unlock()
	a.SetPeers([]Peer{at(b)})
	eventually(t, "some refusals", func() bool { return b.Stats().Refusals["unknown_peer"] >= 3 })
	if r := await[Refused](t, b); r.Peer != a.self || !errors.Is(r.Err, errStranger) {
		t.Errorf("told %+v", r)
	}
	b.SetPeers([]Peer{at(a)})
	await[Connected](t, a)
	await[Connected](t, b)
}

// A peer that was turned away for long dials only rarely, so it is woken once it is a member.
func TestAPeerThatWasTurnedAwayIsWoken(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	a.SetPeers([]Peer{at(b)})
	eventually(t, "a refusal", func() bool { return b.Stats().Refusals["unknown_peer"] > 0 })
	b.strangers.mu.Lock()
	b.strangers.known[a.self].first = time.Now().Add(-strangerLong)
	b.strangers.mu.Unlock()
	b.SetPeers([]Peer{at(a)})
	eventually(t, "b's dial", func() bool { return a.Stats().Refusals["wrong_direction"] > 0 })
	await[Connected](t, a)
	await[Connected](t, b)
}

func TestARemovedPeerIsLostOnBothSides(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	a.SetPeers(nil)
	if l := await[Lost](t, a); l.Peer != b.self || !errors.Is(l.Err, errRemoved) {
		t.Errorf("got %+v", l)
	}
	await[Lost](t, b)
	if a.Send(b.self, note(1)) {
		t.Error("sent to a removed peer")
	}
	a.SetPeers([]Peer{at(b)})
	await[Connected](t, a)
	await[Connected](t, b)
	exchange(t, a, b)
}

func TestWhatCannotBeSentIsSaidAndCounted(t *testing.T) {
	t.Parallel()
	ids := identities(t, 3)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	if a.Send("no peer ID", note(1)) || a.Send(ids[2].id, note(1)) {
		t.Error("sent to an unknown peer")
	}
	a.SetPeers([]Peer{at(b), {ID: ids[2].id, Addr: loopback}})
	if a.Send(ids[2].id, note(1)) {
		t.Error("sent to a peer that is not connected")
	}
	b.SetPeers([]Peer{at(a)})
	await[Connected](t, a)
	if a.Send(b.self, election.BullyAnswer{}) {
		t.Error("sent an invalid message")
	}
	d := a.Stats().Dropped
	if d["unknown_peer"] != 2 || d["not_connected"] != 1 || d["encode"] != 1 {
		t.Errorf("counted %v", d)
	}
}

func TestASlowConsumerLosesMessagesButNoState(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	a.SetPeers([]Peer{at(b)})
	b.SetPeers([]Peer{at(a)})
	await[Connected](t, a)
	await[Connected](t, b)
	sent := 0
	eventually(t, "an overflow", func() bool {
		for range 100 {
			if a.Send(b.self, note(sent)) {
				sent++
			}
		}
		return b.Stats().Dropped["inbox_full"] > 0
	})
	closeNow(t, a)
	eventually(t, "the loss", func() bool { return !b.Met(a.self) })
	last, got := -1, 0
	for {
		e := <-b.Events()
		if _, lost := e.(Lost); lost {
			break
		}
		n := number(e.(Message).Message)
		if n <= last {
			t.Fatalf("message %d after %d", n, last)
		}
		last, got = n, got+1
	}
	if got < inbox.PerPeer || got >= sent {
		t.Errorf("got %d of %d messages", got, sent)
	}
}

func TestCloseSendsWhatIsQueued(t *testing.T) {
	t.Parallel()
	for closer := range 2 {
		a, b := pair(t)
		both := []*Transport{a, b}
		from, to := both[closer], both[1-closer]
		for i := range queueLength {
			if !from.Send(to.self, note(i)) {
				t.Fatalf("message %d not sent", i)
			}
		}
		closeNow(t, from)
		for i := range queueLength {
			if m := await[Message](t, to); number(m.Message) != i {
				t.Fatalf("message %d: got %+v", i, m)
			}
		}
		await[Lost](t, to)
		if from.Send(to.self, note(1)) {
			t.Error("sent after close")
		}
	}
}

func TestCloseDoesNotWaitLongerThanItsContext(t *testing.T) {
	t.Parallel()
	a, b, line := wired(t)
	line.sever()
	if !a.Send(b.self, note(1)) {
		t.Fatal("not sent")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, open := <-a.Events(); open {
		t.Error("events go on after close")
	}
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	ids := identities(t, 3)
	var all []*Transport
	var peers []Peer
	for i, id := range ids {
		tr, err := New(Config{Key: id.key, Listen: loopback, Hello: helloOf("x", election.LineageID(i+1))})
		if err != nil {
			t.Fatal(err)
		}
		all, peers = append(all, tr), append(peers, at(tr))
	}
	peers = append(peers, Peer{ID: identityOf(t, 99).id, Addr: loopback}) // never there
	for _, tr := range all {
		tr.SetPeers(peers)
	}
	for _, tr := range all {
		await[Connected](t, tr)
		await[Connected](t, tr)
	}
	all[0].SetPeers(nil)
	for _, tr := range all {
		closeNow(t, tr)
		closeNow(t, tr) // a second time is nothing
		tr.SetPeers(peers)
	}
	eventually(t, "the goroutines' end", func() bool { return runtime.NumGoroutine() <= before })
}

func TestABadConfigurationIsAnError(t *testing.T) {
	t.Parallel()
	good := Config{Key: identityOf(t, 1).key, Listen: loopback, Hello: helloOf("a", 1)}
	busy := start(t, good)
	for name, change := range map[string]func(*Config){
		"no key":        func(c *Config) { c.Key = nil },
		"no address":    func(c *Config) { c.Listen = busy.Addr(); c.Listen = Config{}.Listen },
		"address taken": func(c *Config) { c.Listen = busy.Addr() },
		"no boot":       func(c *Config) { c.Hello.Lineage = 0 },
		"bad name":      func(c *Config) { c.Hello.Name = "Ann!" },
		"long text":     func(c *Config) { c.Hello.Version = strings.Repeat("v", maxText+1) },
	} {
		c := good
		change(&c)
		if tr, err := New(c); err == nil {
			t.Errorf("%s was accepted", name)
			closeNow(t, tr)
		}
	}
}
