package membership

import (
	"net/netip"
	"slices"
	"testing"
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
	if m := find(t, v, "agent-1"); m.Draining || m.JoinedAt != one.self.JoinedAt {
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

// A datagram of a keeper of 0.3.0 is neither gossip nor an attack.
func TestAnObituaryOf030IsIgnored(t *testing.T) {
	a := startJoined(t, 1)
	w := &wire{guard: a.wire.guard}
	w.known.Store(&acquaintances{})
	from, scratch := netip.MustParseAddrPort("127.0.0.1:9"), make([]byte, 1<<16)
	sent := obituary + "\x00\x00\x00\x00\x00\x00\x00\x0712345678901234567890123456789012peer-x"
	if w.passes([]byte(sent), from, scratch) || w.noise.Load() != 0 {
		t.Errorf("it passes, or counts as noise %d times", w.noise.Load())
	}
	if w.passes([]byte("noise"), from, scratch) || w.noise.Load() != 1 {
		t.Error("noise is not counted")
	}
}
