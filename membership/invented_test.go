package membership

import (
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// TestAMemberIsShownOnceItHasAnswered: anyone who has the key can announce agents that do not exist.
func TestAMemberIsShownOnceItHasAnswered(t *testing.T) {
	b, voter := testConfig(2).Self, testConfig(3).Self
	answered := map[string]bool{}
	a := testAssembler(func(m Member) bool { return m.Peer == voter.Peer })
	a.answers = func(node string) bool { return answered[node] }
	for i, step := range []struct {
		status            Status
		answers           bool
		members, departed int
	}{
		{Alive, false, 1, 0}, // only the voter: nobody can invent its identity
		{Dead, false, 0, 1},
		{Alive, false, 0, 0}, // its life had ended, so it may be a recording
		{Alive, true, 2, 0},
		{Alive, false, 2, 0}, // members stay in the view, though they can't be heard from here
		{Dead, false, 0, 2},
	} {
		b.Status, voter.Status = step.status, step.status
		for _, m := range []Member{b, voter} {
			answered[gossipName(m.Member)] = step.answers
		}
		v, _ := a.assemble(time.Unix(int64(i), 0), []Member{b, voter})
		if len(v.Members) != step.members || i < 2 && len(v.Departed) != step.departed || i > 3 && len(v.Departed) != step.departed {
			t.Errorf("step %d: members %v, departed %v; want %d and %d", i, namesOf(v.Members), namesOf(v.Departed), step.members, step.departed)
		}
	}
}

// TestInventedAgentsKeepNobodyOut: 1,021 announcements once filled the list for 45 minutes.
func TestInventedAgentsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	a := start(t, testConfig(1))
	k := keyHolder{t, a}
	var invented [][]byte
	for i := range uint64(3 * maxUnproven) {
		cfg := testConfig(1000 + i)
		meta, err := a.notary.seal(cfg.Self, cfg.Signer)
		if err != nil {
			t.Fatal(err)
		}
		invented = append(invented, announcement(gossipName(cfg.Self.Member), meta, netip.MustParseAddrPort("127.0.0.1:9"), []byte(versions)...))
	}
	announce := func() {
		for _, one := range invented {
			k.packet(1, one)
		}
	}
	listed := func() int { return len(a.list.Members()) - 1 }
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); listed() < maxUnproven; {
		announce()
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d invented agents are listed", listed())
		}
	}
	real := startJoined(t, 2, a)
	a.until("the real one alone", func(v View) bool {
		announce()
		if slices.ContainsFunc(v.Members, func(m Member) bool { return m.Peer != a.self.Peer && m.Peer != real.self.Peer }) {
			t.Fatalf("shown are %v", namesOf(v.Members))
		}
		return slices.ContainsFunc(v.Members, func(m Member) bool { return m.Peer == real.self.Peer })
	})
	if n := listed(); n > maxUnproven+1 {
		t.Errorf("%d agents are listed that never answered, want %d", n-1, maxUnproven)
	}
}

// TestANodeThatAnswersFindsRoom: a newcomer hears of a large cluster in one exchange, and lists the agents as
// fast as they answer.
func TestANodeThatAnswersFindsRoom(t *testing.T) {
	d := newDelegate(testNotary(t), "own#1")
	now := time.Now()
	for i := range maxUnproven {
		d.nodes[string(rune('a'+i))] = &listed{Member: Member{Status: Alive}, live: now}
	}
	m := Member{Member: election.Member{Name: "b", Lineage: 7}, GossipAddr: netip.MustParseAddrPort("10.0.0.2:7946")}
	node := gossipName(m.Member)
	if d.mayList(node, m) {
		t.Error("one more that never answered is listed")
	}
	d.owns = func(Member) bool { return true }
	if !d.mayList(node, m) {
		t.Error("an owner of its name is not listed")
	}
	d.owns = func(Member) bool { return false }
	var asked sync.WaitGroup
	exchanged := 0
	ask := func(node string, err error) {
		d.ask(node, func() (time.Duration, error) { return 0, err }, func() error { // lists all that have answered
			if exchanged++; !d.mayList(node, m) {
				t.Error("one that has answered is not listed")
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			for other := range d.proven {
				d.nodes[other] = &listed{Member: Member{Status: Alive}}
			}
			return nil
		}, &asked)
	}
	d.exchanges.Lock() // one is under way
	ask(node, nil)
	ask("c#1", nil)
	ask("silent#1", errors.New("no answer"))
	answered := func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.proven[node] && d.proven["c#1"]
	}
	for !answered() {
		runtime.Gosched()
	}
	d.exchanges.Unlock()
	asked.Wait()
	if exchanged != 1 || d.nodes[node] == nil || d.nodes["c#1"] == nil || d.nodes["silent#1"] != nil || len(d.claimed())+len(d.proven)+len(d.asking) > 0 {
		t.Errorf("%d exchanges; proven are %v", exchanged, d.proven)
	}
	delete(d.nodes, node)
	d.nodes["a"].GossipAddr = m.GossipAddr
	delete(d.nodes, "c#1")
	if d.reached("10.0.0.2:7946"); !d.mayList(node, m) || !d.answers("a") {
		t.Error("one that has exchanged lists still counts as silent")
	}
}

// TestAnAddressThatSeveralClaimProvesNoneOfThem: an attacker announces invented agents at the address of a real
// one. An exchange with that address does not show which of them is there.
func TestAnAddressThatSeveralClaimProvesNoneOfThem(t *testing.T) {
	d := newDelegate(testNotary(t), "own#1")
	at := netip.MustParseAddrPort("10.0.0.1:7946")
	list := func(node string, status Status) *listed {
		k := &listed{node: node}
		k.GossipAddr, k.Status = at, status
		d.nodes[node] = k
		return k
	}
	real, dead := list("real#1", Alive), list("former#1", Dead)
	d.reached(at.String())
	if real.answered.IsZero() || !dead.answered.IsZero() {
		t.Errorf("after an exchange the only live node has answered at %v, its dead former one at %v", real.answered, dead.answered)
	}
	if d.alone("invented#1", at.String()) || !d.alone("real#1", at.String()) {
		t.Error("an invented node may be tried by TCP at another's address, or the real one may not")
	}
	real.answered = time.Time{}
	invented := list("invented#1", Alive)
	d.reached(at.String())
	if !real.answered.IsZero() || !invented.answered.IsZero() {
		t.Errorf("an exchange with an address that two claim proves %v and %v", real.answered, invented.answered)
	}
}
