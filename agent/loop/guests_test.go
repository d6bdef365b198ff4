package loop

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// came is the event of a guest that connects.
func came(id election.PeerID, name, proof string) transport.Connected {
	return transport.Connected{Peer: id, Hello: transport.Hello{Lineage: 7, Name: name},
		Pass: &transport.Pass{Advert: []byte(name), Proof: []byte(proof), Gossip: netip.MustParseAddrPort("10.0.0.2:7946")}}
}

// counted lists the members in the elector's newest view.
func (r *rig) counted() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range slices.Backward(r.inputs) {
		if v, ok := in.(election.ViewChanged); ok {
			return strings.Join(each.Of(v.View.Members, func(m election.Member) string { return m.Name }), " ")
		}
	}
	return ""
}

// listed lists the members and the departed that readers see.
func (r *rig) listed() string {
	v := r.loop.Picture().View
	name := func(m membership.Member) string { return m.Name }
	return strings.Join(append(append(each.Of(v.Members, name), "-"), each.Of(v.Departed, name)...), " ")
}

func TestAGuestCountsAsAMemberUntilGossipShowsItOrItsConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		defer r.cancel()
		self := memberOf("a", membership.Alive)
		lone := membership.View{Members: []membership.Member{self}}
		r.views <- lone
		for _, step := range []struct {
			what, counted, listed string
			isPeer                bool
			happens               func()
		}{
			{"a guest comes", "a b", "a b -", false, func() { r.hear(came("b", "b", "good")) }},
			{"gossip has other news", "a b", "a b -", false, func() { r.views <- lone }},
			{"its connection ends", "a", "a -", false, func() { r.hear(transport.Lost{Peer: "b"}) }},
			{"gossip calls a former life of it dead", "a", "a - b", false, func() {
				r.views <- membership.View{Members: lone.Members, Departed: []membership.Member{memberOf("b", membership.Dead)}}
			}},
			{"it comes back", "a b", "a b -", false, func() { r.hear(came("b", "b", "good")) }},
			{"gossip shows it", "a b", "a b -", true, func() {
				r.views <- membership.View{Members: []membership.Member{self, memberOf("b", membership.Alive)}}
			}},
			{"its connection ends, and it is a member", "a b", "a b -", true, func() { r.hear(transport.Lost{Peer: "b"}) }},
			{"a member comes with a pass", "a b", "a b -", true, func() { r.hear(came("b", "b", "good")) }},
			{"gossip lost it", "a", "a -", false, func() { r.views <- lone }},
			{"a guest comes whose proof is not valid any more", "a", "a -", false, func() { r.hear(came("c", "c", "former")) }},
		} {
			step.happens()
			synctest.Wait()
			if got := r.counted(); got != step.counted {
				t.Errorf("%s: the elector counts %q, want %q", step.what, got, step.counted)
			}
			if got := r.listed(); got != step.listed {
				t.Errorf("%s: readers see %q, want %q", step.what, got, step.listed)
			}
			if r.isPeer("b") != step.isPeer {
				t.Errorf("%s: named to the transport: %t", step.what, !step.isPeer)
			}
		}
	})
}

// Otherwise it would stay connected, would be no member, and would have no cause to bring a proof.
func TestAGuestWithoutAValidProofIsDismissed(t *testing.T) {
	for _, proof := range []string{"", "former"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil).start(t)
			defer r.cancel()
			r.views <- membership.View{Members: []membership.Member{memberOf("a", membership.Alive), memberOf("b", membership.Alive)}}
			r.hear(came("b", "b", proof), came("c", "c", proof))
			synctest.Wait()
			if r.counted() != "a b" || strings.Count(r.happened(), "dismiss:") != 1 || !strings.Contains(r.happened(), "dismiss:c") {
				t.Errorf("proof %q: counted are %q; %s", proof, r.counted(), r.happened())
			}
		})
	}
}

func TestAGuestTakesNobodysName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.status.Roster = &election.Roster{Voters: []election.Voter{{Name: "b", Peer: "voter"}}}
		r.start(t)
		defer r.cancel()
		r.views <- membership.View{Members: []membership.Member{memberOf("a", membership.Alive)}}
		r.hear(came("late", "c", "good"), came("voter", "b", "good"))
		synctest.Wait()
		if r.counted() != "a c b" {
			t.Fatalf("counted are %q", r.counted())
		}
		other, usurper := memberOf("other", membership.Alive), memberOf("usurper", membership.Alive)
		other.Name, usurper.Name = "c", "b"
		r.views <- membership.View{Members: []membership.Member{memberOf("a", membership.Alive), other, usurper}}
		synctest.Wait()
		if r.counted() != "a c b" || strings.Count(r.happened(), "dismiss:") != 1 || !strings.Contains(r.happened(), "dismiss:late") {
			t.Errorf("counted are %q; %s", r.counted(), r.happened())
		}
	})
}

func TestWhoMayBeAGuest(t *testing.T) {
	b := memberOf("b", membership.Alive)
	left := memberOf("b", membership.Left)
	earlier := left
	earlier.Lineage++
	named := memberOf("x", membership.Alive)
	named.Name = "b"
	for what, c := range map[string]struct {
		view   membership.View
		roster *election.Roster
		want   string
	}{
		"one that nobody knows":                      {want: ""},
		"one that gossip calls dead":                 {view: membership.View{Departed: []membership.Member{memberOf("b", membership.Dead)}}},
		"one that has left":                          {view: membership.View{Departed: []membership.Member{left}}, want: "left"},
		"one whose former lineage has left":          {view: membership.View{Departed: []membership.Member{earlier}}},
		"one with another's name":                    {view: membership.View{Members: []membership.Member{named}}, want: `has the name "b"`},
		"a voter whose name another has":             {view: membership.View{Members: []membership.Member{named}}, roster: &election.Roster{Voters: []election.Voter{{Name: "b", Peer: "b"}}}},
		"one that gossip has come to show by itself": {view: membership.View{Members: []membership.Member{b}}},
	} {
		err := Admissible(&serve.Picture{View: &c.view, Status: &elector.Status{Roster: c.roster}}, b)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

func TestAGuestThatGossipNeverShowsIsAWarning(t *testing.T) {
	p := newPresence(lease)
	b := memberOf("b", membership.Alive)
	at := election.Instant(time.Minute)
	p.update(at, &membership.View{Members: []membership.Member{b}}, map[election.PeerID]guest{"b": {b, at}}, nil)
	if w := p.warnings(at.Add(gossipLateAfter - 1)); len(w) > 0 {
		t.Errorf("warned too early: %+v", w)
	}
	if w := p.warnings(at.Add(gossipLateAfter)); len(w) != 1 || w[0].Code != warnGossip || !strings.Contains(w[0].Message, "open port 7946 at 10.0.0.1") {
		t.Errorf("warned %+v", w)
	}
}
