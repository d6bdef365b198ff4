package loop

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// memberOf is a member as gossip sees it.
func memberOf(name string, s membership.Status) membership.Member {
	return membership.Member{
		Member:     election.Member{Peer: election.PeerID(name), Lineage: 7, Name: name},
		PeerAddr:   netip.MustParseAddrPort("10.0.0.1:7947"),
		GossipAddr: netip.MustParseAddrPort("10.0.0.1:7946"), Status: s,
	}
}

// who lists the present members. A suspected one is marked with "?".
func (p *presence) who() string {
	var all []string
	for _, m := range p.members {
		name := m.Name
		if m.Suspected {
			name += "?"
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

func TestAMemberThatGossipCallsDeadStaysWhileItsStreamIsHeard(t *testing.T) {
	p := newPresence(lease)
	v := &membership.View{Members: []membership.Member{memberOf("a", membership.Alive), memberOf("b", membership.Alive)}}
	heard := map[election.PeerID]election.Instant{"b": 1}
	at := election.Instant(time.Minute)
	p.update(at, v, nil, heard)
	if p.who() != "a b" || p.dueAt != election.Never {
		t.Fatalf("present: %s, look again at %d", p.who(), p.dueAt)
	}
	v = &membership.View{Members: v.Members[:1], Departed: []membership.Member{memberOf("b", membership.Dead)}}
	for _, step := range []struct {
		what  string
		after time.Duration // since gossip called it dead
		heard time.Duration // since gossip called it dead; below 0: no message came
		want  string
	}{
		{"one that owed nothing was not heard for long, and is asked", 0, -1, "a b?"},
		{"it may take a lease to answer", lease - 1, -1, "a b?"},
		{"it answered", lease - 1, lease - 2, "a b"},
		{"it was heard within a lease", 2*lease - 3, -1, "a b"},
		{"and a minute later", time.Minute, time.Minute - lease/2, "a b"},
		{"both are silent", time.Minute + lease, -1, "a"},
		{"the loss of its stream is not news yet", time.Minute + lease, -1, "a"},
	} {
		if step.heard >= 0 {
			heard["b"] = at.Add(step.heard)
		}
		now := at.Add(step.after)
		p.update(now, v, nil, heard)
		if p.who() != step.want {
			t.Errorf("%s: present are %q, want %q", step.what, p.who(), step.want)
		}
		if kept := strings.Contains(step.want, "b"); kept != (p.dueAt <= now.Add(lease/4)) {
			t.Errorf("%s: it is looked at again at %d, now is %d", step.what, p.dueAt, now)
		}
	}
}

func TestOnlyTheDeadWithAStreamAreKept(t *testing.T) {
	at := election.Instant(time.Minute)
	other := memberOf("c", membership.Alive)
	other.Name = "b" // a rebuilt host
	for _, c := range []struct {
		name  string
		live  []membership.Member
		gone  membership.Status
		heard map[election.PeerID]election.Instant
	}{
		{"it left", nil, membership.Left, map[election.PeerID]election.Instant{"b": at}},
		{"it has no stream", nil, membership.Dead, nil},
		{"another has its name", []membership.Member{other}, membership.Dead, map[election.PeerID]election.Instant{"b": at}},
	} {
		p := newPresence(lease)
		p.update(at, &membership.View{Members: c.live, Departed: []membership.Member{memberOf("b", c.gone)}}, nil, c.heard)
		if slices.ContainsFunc(p.members, func(m present) bool { return m.Peer == "b" }) {
			t.Errorf("%s: it is kept", c.name)
		}
	}
}

func TestGossipThatIsBlockedIsAWarning(t *testing.T) {
	p := newPresence(lease)
	v := &membership.View{Departed: []membership.Member{memberOf("b", membership.Dead)}}
	at := election.Instant(time.Minute)
	heard := map[election.PeerID]election.Instant{}
	for d := time.Duration(0); d <= gossipBlockedAfter; d += lease / 2 {
		heard["b"] = at.Add(d)
		p.update(at.Add(d), v, nil, heard)
		if w := p.warnings(at.Add(d)); (len(w) > 0) != (d >= gossipBlockedAfter) {
			t.Fatalf("%s after the verdict: %v", d, w)
		}
	}
	w := p.warnings(at.Add(gossipBlockedAfter))
	if want := "gossip does not reach b, whose direct connection works: open port 7946 at 10.0.0.1, for UDP and TCP, in both directions"; w[0].Message != want || w[0].Code != "gossip_blocked" {
		t.Errorf("warned %+v", w)
	}
}

// The whole loop: for a minute, gossip's port to b is blocked and the stream to b works.
func TestGossipClosesNoStreamThatWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		defer r.cancel()
		r.hear(transport.Connected{Peer: "b", Hello: transport.Hello{Lineage: 7}})
		r.views <- membership.View{Members: []membership.Member{memberOf("a", membership.Alive), memberOf("b", membership.Alive)}}
		r.views <- membership.View{Members: []membership.Member{memberOf("a", membership.Alive)}, Departed: []membership.Member{memberOf("b", membership.Dead)}}
		synctest.Wait()
		for range 60 * 2 {
			if !r.isPeer("b") {
				t.Fatal("its stream is closed")
			}
			if !strings.Contains(r.happened(), "send:b") {
				t.Fatal("it is not asked for a sign of life")
			}
			r.hear(transport.Message{Peer: "b", Message: election.Report{}})
			<-time.After(lease / 2)
			synctest.Wait()
		}
		<-time.After(2 * lease) // now the stream is silent too
		synctest.Wait()
		if r.isPeer("b") {
			t.Error("it is kept though both are silent")
		}
		if !r.got(election.ViewChanged{View: election.View{Members: []election.Member{memberOf("a", "").Member}}}) {
			t.Error("the elector does not hear that it is gone")
		}
	})
}

func TestVotersAreConnectedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.loop.Voters = []string{"b"}
		r.start(t)
		defer r.cancel()
		r.views <- membership.View{Members: []membership.Member{memberOf("b", membership.Alive), memberOf("c", membership.Alive)}}
		synctest.Wait()
		if got := r.first(); got != "b" {
			t.Errorf("first are %q, want the first roster's voters as long as there is no roster", got)
		}
		r.mu.Lock()
		r.status.Roster = &election.Roster{Voters: []election.Voter{{Name: "c", Peer: "c"}}}
		r.mu.Unlock()
		r.hear(transport.Connected{Peer: "b"})
		synctest.Wait()
		if got := r.first(); got != "c" {
			t.Errorf("first are %q, want the roster's voters", got)
		}
	})
}

// TestWhatIsNeitherToAVoterNorToALeaderCanWait: when many agents start at once, connections that no vote and no
// leader needs are put off.
func TestWhatIsNeitherToAVoterNorToALeaderCanWait(t *testing.T) {
	for _, c := range []struct {
		voters []string
		leads  bool
		want   string
	}{
		{[]string{"b"}, false, "c"},
		{[]string{"b"}, true, ""}, // all others need a leader's connections
		{[]string{"a", "b"}, false, ""},
		{nil, false, ""}, // this agent does not know the voters
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil)
			r.loop.Voters, r.loop.led = c.voters, c.leads
			r.start(t)
			defer r.cancel()
			r.views <- membership.View{Members: []membership.Member{memberOf("b", membership.Alive), memberOf("c", membership.Alive)}}
			synctest.Wait()
			if got := r.later(); got != c.want {
				t.Errorf("voters %v, leads %t: %q can wait, want %q", c.voters, c.leads, got, c.want)
			}
		})
	}
}

// A later life must renew its lease in time, perhaps before gossip has joined.
func TestRecordedVotersAreConnectedUntilGossipShowsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		at := netip.MustParseAddrPort("10.0.0.9:7947")
		were := []record.Voter{{Peer: me, Stream: at}, {Peer: "b", Stream: at}, {Peer: "c", Stream: at}, {Peer: "gone", Stream: at}}
		r.loop.Known = slices.Clone(were)
		voters := []election.Voter{{Name: "a", Peer: me}, {Name: "b", Peer: "b"}, {Name: "c", Peer: "c"}}
		r.status.Roster = &election.Roster{Voters: voters}
		r.start(t)
		defer r.cancel()
		for _, step := range []struct {
			what string
			view membership.View
			want string
		}{
			{"gossip has not joined", membership.View{Members: []membership.Member{memberOf("a", membership.Alive)}}, "b c"},
			{"it shows b at another address", membership.View{Members: []membership.Member{memberOf("b", membership.Alive)}}, "b c"},
			{"c has left", membership.View{Departed: []membership.Member{memberOf("c", membership.Left)}}, ""},
		} {
			r.views <- step.view
			synctest.Wait()
			if got := r.first(); got != step.want {
				t.Errorf("%s: first are %q, want %q", step.what, got, step.want)
			}
			if r.isPeer("gone") || r.isPeer(me) {
				t.Errorf("%s: connected are %+v", step.what, r.peers)
			}
		}
		if all := r.loop.votersToReach(were); len(all) != 2 {
			t.Errorf("on record are %+v", all)
		}
	})
}

// While the first roster forms among many members, voters answer each other alone. Among few, nobody need wait: a
// voter behind NAT is not known by its address, and would wait too.
func TestVotersWithoutARosterAnswerVotersAloneInACrowd(t *testing.T) {
	for _, c := range []struct {
		voters  []string
		roster  *election.Roster
		members int
		want    bool
	}{
		{[]string{"a", "b"}, nil, crowd, true},
		{[]string{"a", "b"}, nil, crowd - 1, false},
		{[]string{"b"}, nil, crowd, false},
		{[]string{"a", "b"}, &election.Roster{Voters: []election.Voter{{Name: "a", Peer: me}}}, crowd, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil)
			r.loop.Voters, r.status.Roster = c.voters, c.roster
			r.start(t)
			defer r.cancel()
			var members []membership.Member
			for i := range c.members {
				members = append(members, memberOf(string(rune('a'+i)), membership.Alive))
			}
			r.views <- membership.View{Members: members}
			synctest.Wait()
			r.hear(transport.Connected{Peer: "b"}) // the picture has the roster
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.votersOnly != c.want {
				t.Errorf("voters %v of %d, roster %v: voters alone %t, want %t", c.voters, c.members, c.roster, r.votersOnly, c.want)
			}
		})
	}
}
