package membership

import (
	"context"
	"io"
	"log"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

func TestInALargeClusterGossipGoesToFewerAtATime(t *testing.T) {
	t.Parallel()
	for members, want := range map[int64]int{0: 3, 1: 3, few: 3, few + 1: 2, 48: 2, 49: 1, 100: 1, maxMembers: 1} {
		if got := gossipNodes(3, members); got != want {
			t.Errorf("%d members: a round goes to %d, want %d", members, got, want)
		}
	}
	// While memberlist starts, it reads its configuration without its lock.
	list := memberlist.DefaultLANConfig()
	list.Name, list.Logger = "own", log.New(io.Discard, "", 0)
	list.GossipInterval, list.ProbeInterval, list.PushPullInterval = 0, 0, 0
	list.Transport = new(memberlist.MockNetwork).NewTransport("own")
	slow := newSuspicion(list, time.Now())
	if slow.adapt(time.Now(), maxMembers); list.GossipNodes != 3 {
		t.Errorf("changed to %d while memberlist starts", list.GossipNodes)
	}
	running, err := memberlist.Create(list)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Shutdown()
	slow.list.Store(running)
	if slow.adapt(time.Now(), maxMembers); list.GossipNodes != 1 {
		t.Errorf("a running list goes to %d of %d members at a time", list.GossipNodes, maxMembers)
	}
}

// reader is a loop without memberlist, in a bubble. Its nodes need not answer.
type reader struct {
	*Membership
	t *testing.T
}

func newReader(t *testing.T) *reader {
	t.Helper()
	timing, err := PaceLAN.timing()
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(1)
	cfg.Judge = func(Member) error { return nil }
	cfg.Rightful = func(Member) bool { return true }
	m := &Membership{cfg: cfg, timing: timing, notary: newNotary(cfg.Cluster, cfg.PeerIDOf), keys: &keyring{}, self: cfg.Self,
		views: make(chan View, 1), hints: make(chan Refusal, 64), update: make(chan struct{}, 1), reseed: make(chan []seed)}
	m.ctx, m.cancel = context.WithCancel(t.Context())
	m.del = newDelegate(m.notary, gossipName(cfg.Self.Member))
	m.del.owns = cfg.Rightful
	m.del.votes = func(m Member) bool { return m.Name == "agent-2" }
	m.del.slow = newSuspicion(memberlist.DefaultLANConfig(), time.Now())
	m.del.kept = time.Hour
	m.wire = &wire{admission: newAdmission(), advertise: cfg.Self.PeerAddr}
	m.wire.known.Store(&acquaintances{})
	l := newLoop(m, nil, time.Now())
	m.running.Go(l.run)
	return &reader{m, t}
}

// lists lets memberlist list agent n, or change its entry.
func (r *reader) lists(n uint64, draining bool) {
	r.t.Helper()
	self := testConfig(n).Self
	self.Draining = draining
	meta, err := r.notary.seal(self, testKey(n))
	if err != nil {
		r.t.Fatal(err)
	}
	r.del.NotifyJoin(&memberlist.Node{Name: gossipName(self.Member), Meta: meta, Addr: net.IPv4(10, 0, byte(n>>8), byte(n)), Port: 1})
}

// after returns how long the next view takes.
func (r *reader) after() time.Duration {
	began := time.Now()
	<-r.views
	return time.Since(began)
}

func TestALargeListIsReadRarelyButAChangeOfAVoterAtOnce(t *testing.T) {
	for _, c := range []struct {
		members uint64
		least   time.Duration
	}{{few, 0}, {few + 1, (few + 1) * readRestEach}, {200, 2 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			r := newReader(t)
			defer r.running.Wait()
			defer r.cancel()
			for n := range c.members {
				r.lists(n+1, false)
			}
			synctest.Wait()
			<-time.After(10 * time.Second) // a reading without a change publishes nothing
			synctest.Wait()
			<-r.views
			r.lists(3, true)
			r.after()
			r.lists(4, true)
			if took := r.after(); took < c.least || took > max(c.least, readRestMin)+time.Duration(c.members)*readRestEach {
				t.Errorf("with %d members, the second change is seen after %s, want %s", c.members, took, c.least)
			}
			r.lists(2, true)
			if took := r.after(); took > 0 {
				t.Errorf("with %d members, a change of a voter is seen after %s", c.members, took)
			}
			r.lists(5, true)
			r.lists(6, true)
			if took := r.after(); took < c.least {
				t.Errorf("with %d members, after a voter's change another is seen after %s", c.members, took)
			}
		})
	}
}

// A voter that is back may enter the view only after its answer, so the answer causes a reading at once, too.
func TestTheFirstAnswerOfAVoterIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReader(t)
		r.cancel() // nobody reads
		r.running.Wait()
		for n, votes := range map[uint64]bool{2: true, 3: false} {
			r.lists(n, false)
			for again, want := range []bool{votes, false} {
				<-time.After(askAgain)
				r.del.urgent.Store(false)
				r.del.ask(gossipName(testConfig(n).Self.Member), func() (time.Duration, error) { return 0, nil }, nil, &r.running)
				if r.running.Wait(); r.del.urgent.Load() != want {
					t.Errorf("agent %d, answer %d: read at once is not %t", n, again+1, want)
				}
			}
		}
	})
}

func TestTheRestAfterAReadingGrowsWithTheMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took    time.Duration
		members int
		want    time.Duration
	}{{0, 5, readRestMin}, {time.Second, 5, 4 * time.Second}, {time.Millisecond, few, 4 * time.Millisecond},
		{time.Millisecond, 100, 1500 * time.Millisecond}, {time.Second, 100, 4 * time.Second}} {
		if got := restAfter(c.took, c.members); got != c.want {
			t.Errorf("after %s with %d members: %s, want %s", c.took, c.members, got, c.want)
		}
	}
}
