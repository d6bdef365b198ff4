package membership

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// recorded is the agent's announcement of itself, as an attacker may have captured it.
func recorded(a *agent) []byte {
	return announcement(a.del.self, *a.del.meta.Load(), a.Addr(), []byte(versions)...)
}

// listedAs reports whether agent a's memberlist lists the node.
func listedAs(a *agent, node string) bool {
	return slices.ContainsFunc(a.list.Members(), func(n *memberlist.Node) bool { return n.Name == node })
}

// refusesName reports whether the view refuses an agent of that name. Agents of other tests, with other keys, may
// still look for their members at a port that this test uses now: the refusals of these agents have no name.
func refusesName(v View, name string) bool {
	return slices.ContainsFunc(v.Refused, func(r Refusal) bool { return r.Name == name })
}

// replay sends a recording until memberlist lists the node, and returns once memberlist has dropped the node again.
// In all that time each view must be right.
func replay(t *testing.T, a *agent, node string, recording []byte, right func(View) bool) {
	t.Helper()
	k := keyHolder{t, a}
	deadline := time.After(4 * patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	listed := false
	for {
		select {
		case a.view = <-a.Views():
			if !right(a.view) {
				t.Fatalf("a recording changed the view: %v, refused %v", namesOf(a.view.Members), a.view.Refused)
			}
		case <-tick.C:
			now := listedAs(a, node)
			if listed && !now {
				return
			}
			if listed = listed || now; !listed {
				k.packet(1, recording)
			}
		case <-deadline:
			t.Fatalf("memberlist never listed %s and then missed it", node)
		}
	}
}

// TestAnEndedLifeComesBackOnlyIfItAnswers: if a life is listed again, that may come from a recording, even
// if no other agent has its name.
func TestAnEndedLifeComesBackOnlyIfItAnswers(t *testing.T) {
	b := testConfig(2).Self
	b.GossipAddr = b.PeerAddr
	answered := true
	a := testAssembler(nobody)
	a.answers = func(string) bool { return answered }
	alive, dead := []Member{b}, []Member{b}
	alive[0].Status, dead[0].Status = Alive, Dead
	for i, step := range []struct {
		seen     []Member
		answered bool
		members  int
		doubted  int
	}{
		{alive, true, 1, 0},
		{alive, false, 1, 0}, // members stay in the view
		{dead, false, 0, 0},
		{alive, false, 0, 1},
		{alive, true, 1, 0},
	} {
		answered = step.answered
		v, _ := a.assemble(time.Unix(int64(i), 0), step.seen)
		if len(v.Members) != step.members || len(a.doubted) != step.doubted {
			t.Errorf("step %d: members %v, doubted %v; want %d and %d", i, namesOf(v.Members), namesOf(a.doubted), step.members, step.doubted)
		}
	}
}

// TestAReplayedLifeChangesNothing: an agent loses its disk and comes back under its name with a new
// identity. Gossip about the former identity is sent again later. The new identity keeps the name, and
// the former one is not let in.
func TestAReplayedLifeChangesNothing(t *testing.T) {
	t.Parallel()
	t.Run("nobody has its name", func(t *testing.T) {
		t.Parallel()
		a, node, recording := survivor(t)
		replay(t, a, node, recording, func(v View) bool { return len(v.Members) == 1 })
	})
	t.Run("another has its name", func(t *testing.T) {
		t.Parallel()
		a, node, recording := survivor(t)
		cfg := testConfig(12)
		cfg.Self.Name, cfg.Join = "agent-2", addrsOf(a)
		live := start(t, cfg)
		a.until("the new identity", func(v View) bool {
			m, ok := v.Election().Named("agent-2")
			return ok && m.Peer == live.self.Peer
		})
		replay(t, a, node, recording, func(v View) bool {
			return len(v.Members) == 2 && find(t, v, "agent-2").Peer == live.self.Peer && !refusesName(v, "agent-2")
		})
	})
}

// survivor returns an agent that has seen the death of agent-2, and a recording of agent-2's announcement.
func survivor(t *testing.T) (a *agent, node string, recording []byte) {
	cfg := testConfig(1)
	cfg.Pace = PaceLocal
	cfg.tune = func(t *timing) {
		t.forget, t.probeInterval, t.probeTimeout = 100*time.Millisecond, t.probeInterval/2, t.probeTimeout/2
	}
	cfg.Rightful = func(m Member) bool { return m.Peer == testConfig(2).Self.Peer } // it was a voter
	a = start(t, cfg)
	former := startJoined(t, 2, a)
	a.sees("agent-1", "agent-2")
	node, recording = former.del.self, recorded(former)
	if err := former.Close(); err != nil {
		t.Fatal(err)
	}
	a.departs("agent-2", Dead)
	return a, node, recording
}

// An agent that starts while a recording is sent sees two identities with one name, and knows neither.
// It believes the one that answers.
func TestOfTwoUnknownWithOneNameTheOneThatAnswersIsBelieved(t *testing.T) {
	peer := func(n uint64) Member {
		m := testConfig(n).Self
		m.Name, m.Status, m.GossipAddr = "b", Alive, m.PeerAddr
		return m
	}
	ghost, live := peer(2), peer(3) // the ghost was a voter
	a := testAssembler(func(m Member) bool { return m.Peer == ghost.Peer })
	answered := map[string]bool{}
	a.answers = func(node string) bool { return answered[node] }
	seen := []Member{ghost, live}
	v, _ := a.assemble(time.Unix(1, 0), seen)
	if len(v.Members) != 0 || len(a.doubted) != 2 {
		t.Errorf("at first: members %v, doubted %v", namesOf(v.Members), namesOf(a.doubted))
	}
	answered[gossipName(live.Member)] = true
	for range 2 {
		v, refused := a.assemble(time.Unix(2, 0), seen)
		if len(v.Members) != 1 || v.Members[0].Peer != live.Peer || len(refused) != 0 {
			t.Errorf("after the answer: %+v, refused %v", v.Members, refused)
		}
	}
	// If both answer, the names conflict as usual.
	answered[gossipName(ghost.Member)] = true
	if _, refused := a.assemble(time.Unix(3, 0), seen); len(refused) != 1 || !strings.Contains(refused[0].Err.Error(), "is taken") {
		t.Errorf("both answered: %v", refused)
	}
}

func TestEndedLivesAreBoundedAndForgotten(t *testing.T) {
	a := testAssembler(nobody)
	now := time.Unix(1000, 0)
	m := testConfig(7).Self
	for i := range maxGone + 100 {
		m.Lineage++
		a.bury(now.Add(time.Duration(i)), nil, []Member{m})
	}
	if len(a.gone) != maxGone {
		t.Errorf("%d are remembered, want %d", len(a.gone), maxGone)
	}
	a.bury(now.Add(departedFor+time.Hour), nil, nil)
	if len(a.gone) != 0 {
		t.Errorf("%d are remembered after their time", len(a.gone))
	}
}
