package membership

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/obituary"
)

// A later life has the lineage, the seniority and the address of the one before.
func TestALaterLifeTakesItsPlaceWithoutBeingMissed(t *testing.T) {
	t.Parallel()
	one := startToReturn(t, 1)
	two := startJoined(t, 2, one)
	one.sees("agent-1", "agent-2")
	two.sees("agent-1", "agent-2")
	one.Update(func(m *Member) { m.Draining = true }) // so that gossip knows it by a higher incarnation than a later life begins with
	two.until("the change", func(v View) bool { return find(t, v, "agent-1").Draining })

	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(1)
	cfg.Port, cfg.Join = int(one.Addr().Port()), addrsOf(two)
	cfg.Self.Version = "v2"
	later := start(t, cfg)
	later.sees("agent-1", "agent-2")
	v := two.until("what the later life advertises", func(v View) bool {
		if len(v.Members) != 2 {
			t.Errorf("it was missed: %+v", v)
		}
		return slices.ContainsFunc(v.Members, func(m Member) bool { return m.Version == "v2" })
	})
	if m := find(t, v, "agent-1"); m.Draining || m.JoinedAt != one.self.JoinedAt || len(m.Candidacies) != 1 {
		t.Errorf("the later life is seen as %+v", m)
	}
}

func TestALaterLifeComesBackThoughItsFormerOneWasMissed(t *testing.T) {
	t.Parallel()
	one := startToReturn(t, 1)
	two := startJoined(t, 2, one)
	two.sees("agent-1", "agent-2")
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	two.departs("agent-1", Dead)
	cfg := testConfig(1)
	cfg.Port = int(one.Addr().Port())
	later := start(t, cfg)
	two.sees("agent-1", "agent-2")
	later.sees("agent-1", "agent-2")
}

func TestANoticeIsHandedOnAndNothingLikeIt(t *testing.T) {
	t.Parallel()
	a := startJoined(t, 1)
	c, err := net.Dial("udp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := obituary.Notice{Holder: election.Holder{Peer: "peer-x", Lineage: 7}, Secret: [32]byte{1, 31: 2}}
	packet, err := obituary.Encode(sent)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{packet[:len(obituary.Magic)], packet[:len(packet)/2], packet} {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case got := <-a.Notices():
		if got != sent {
			t.Errorf("got %+v", got)
		}
	case <-time.After(patience):
		t.Fatal("no notice")
	}
	if len(a.Notices()) > 0 {
		t.Errorf("a broken one was handed on: %+v", <-a.Notices())
	}
}

func TestAFloodOfNoticesIsBounded(t *testing.T) {
	q, now, passed := quota{most: maxNotices}, time.Unix(1000, 0), 0
	for range 10_000 {
		now = now.Add(time.Second / 1000)
		if q.take(now) {
			passed++
		}
	}
	if passed < 9*maxNotices || passed > 11*maxNotices {
		t.Errorf("%d of 10,000 in 10 s pass", passed)
	}
	w := &wire{notices: make(chan obituary.Notice, 1)}
	packet, err := obituary.Encode(obituary.Notice{Holder: election.Holder{Peer: "peer-x", Lineage: 7}})
	if err != nil {
		t.Fatal(err)
	}
	if !w.notice(packet) || w.notice(packet) {
		t.Error("what does not fit is not dropped")
	}
}
