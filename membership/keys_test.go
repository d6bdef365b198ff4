package membership

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// The key of two agents, and then of a third, is changed step by step, as by an operator. No agent is
// refused at any moment.
func TestTheClusterKeyIsChangedWhileGossipGoesOn(t *testing.T) {
	t.Parallel()
	older, newer := []byte("0123456789abcdef0123456789abcdef"), bytes.Repeat([]byte("k"), 32)
	a := start(t, testConfig(1))
	b := startJoined(t, 2, a)
	a.sees("agent-1", "agent-2")
	b.sees("agent-1", "agent-2")
	step := func(keys ...[]byte) {
		t.Helper()
		for _, x := range []*agent{a, b} {
			if err := x.SetKeys(keys); err != nil {
				t.Fatal(err)
			}
			if got := x.Keys(); !slices.EqualFunc(got, keys, bytes.Equal) {
				t.Fatalf("the keys are %q, want %q", got, keys)
			}
			// A change is heard with every mix of keys that is in use at that moment.
			draining := !x.self.Draining
			if err := x.Update(func(m *Member) { m.Draining = draining }); err != nil {
				t.Fatal(err)
			}
			for _, y := range []*agent{a, b} {
				y.until("word of "+x.self.Name, func(v View) bool {
					m, ok := v.Election().Named(x.self.Name)
					return ok && m.Draining == draining
				})
			}
		}
	}
	step(older, newer)
	step(newer, older)
	step(newer)
	c := testConfig(3)
	c.Key, c.Join = newer, addrsOf(a)
	start(t, c).sees("agent-1", "agent-2", "agent-3")
	for _, x := range []*agent{a, b} {
		if v := x.sees("agent-1", "agent-2", "agent-3"); len(v.Refused) > 0 {
			t.Errorf("%s refused: %+v", x.self.Name, v.Refused)
		}
	}
	old := testConfig(4)
	old.Join = addrsOf(a)
	start(t, old).refuses(CauseClusterKey)
}

func TestKeysThatStayOutliveTheOnesRemovedBeforeThem(t *testing.T) {
	key := func(c byte) []byte { return bytes.Repeat([]byte{c}, 32) }
	cfg := testConfig(1)
	cfg.Key, cfg.OtherKeys = key('a'), [][]byte{key('b'), key('c'), key('d')}
	m := start(t, cfg)
	for _, want := range [][][]byte{
		{key('a'), key('c'), key('d')},
		{key('d'), key('e')},
		{key('e')},
	} {
		if err := m.SetKeys(want); err != nil {
			t.Fatal(err)
		}
		if got := m.Keys(); !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("the keys are %q, want %q", got, want)
		}
	}
	for name, bad := range map[string][][]byte{"none": nil, "a short one": {key('a'), []byte("x")}, "one of AES-128": {key('a')[:16]}, "one of AES-192": {key('a')[:24]}} {
		if err := m.SetKeys(bad); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	cfg = testConfig(2)
	cfg.Key = nil
	plain := start(t, cfg)
	if err := plain.SetKeys([][]byte{key('a')}); err == nil || plain.Keys() != nil {
		t.Error("an agent without a key gets one")
	}
}

// An agent that does not get the new key is shut out: it is shown as one that left, so the others do
// not dial it. An agent that has the key and dies later is shown as dead.
func TestWhoDoesNotGetTheNewKeyIsShutOut(t *testing.T) {
	t.Parallel()
	older, newer := testConfig(1).Key, bytes.Repeat([]byte("k"), KeySize)
	a := start(t, testConfig(1))
	b := startJoined(t, 2, a)
	c := startJoined(t, 3, a)
	for _, x := range []*agent{a, b, c} {
		x.sees("agent-1", "agent-2", "agent-3")
	}
	for _, keys := range [][][]byte{{older, newer}, {newer, older}, {newer}} {
		for _, x := range []*agent{a, b} {
			if err := x.SetKeys(keys); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.departs("agent-3", Left)
	b.departs("agent-3", Left)
	removed := a.keys.removed.Load()
	if removed == nil {
		t.Fatal("no key was removed")
	}
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, at := a.del.answered(b.del.self); at.After(*removed) {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("agent-2 answered no probe under the new key")
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	a.departs("agent-2", Dead)
}
