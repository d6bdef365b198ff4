package membership

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/doyen-election/doyen/election"
)

// TestClusterKeysThatDifferAreNamedOnBothSides shows what each side reports when one joins the other.
func TestClusterKeysThatDifferAreNamedOnBothSides(t *testing.T) {
	t.Parallel()
	one, other := []byte("0123456789abcdef0123456789abcdef"), []byte("fedcba9876543210fedcba9876543210")
	cases := []struct {
		name               string
		joiner, joined     []byte
		toJoiner, toJoined string
	}{
		{"two keys", one, other, "cluster key differs from that of the agent at 127.0.0.1",
			"cluster key differs from that of the agent at 127.0.0.1"},
		{"key joins none", one, nil, "has no cluster key, but this one has", "has a cluster key, but this one has none"},
		{"none joins key", nil, one, "has a cluster key, but this one has none", "has no cluster key, but this one has"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(1)
			cfg.Key = c.joined
			joined := start(t, cfg)
			cfg = testConfig(2)
			cfg.Key, cfg.Join = c.joiner, addrsOf(joined)
			joiner := start(t, cfg)
			r := joiner.refuses(CauseClusterKey)
			wantText(t, r.Err, c.toJoiner, "give all agents the same cluster key")
			if r.Addr != joined.Addr() {
				t.Errorf("refused %s, want %s", r.Addr, joined.Addr())
			}
			r = joined.refuses(CauseClusterKey)
			wantText(t, r.Err, c.toJoined)
			if r.Addr.Addr() != joiner.Addr().Addr() {
				t.Errorf("refused %s, want host %s", r.Addr, joiner.Addr())
			}
			for _, x := range []*agent{joiner, joined} {
				v := x.until("the refusal in a view", func(v View) bool { return len(v.Refused) > 0 })
				if len(v.Members) != 1 {
					t.Errorf("members %v, want self alone", namesOf(v.Members))
				}
			}
		})
	}
}

func TestAgentsOfAnotherClusterAreNamedOnBothSides(t *testing.T) {
	t.Parallel()
	joined := start(t, testConfig(1))
	cfg := testConfig(2)
	cfg.Cluster, cfg.Join = "staging", addrsOf(joined)
	joiner := start(t, cfg)
	wantText(t, joined.refuses(CauseCluster).Err, `cluster "staging"`, `this one to "test"`)
	// The joined agent closes the stream without an answer, so the joiner has to guess the reason.
	r := joiner.refuses(CauseNoAgent)
	wantText(t, r.Err, joined.Addr().String(), "another cluster than staging")
	for _, x := range []*agent{joiner, joined} {
		if len(x.view.Members) > 1 {
			t.Errorf("members %v", namesOf(x.view.Members))
		}
	}
}

func TestSettingsThatDifferAreRefusedOnBothSides(t *testing.T) {
	t.Parallel()
	judge := func(own Settings) func(Member) error {
		return func(m Member) error {
			if m.Settings != own {
				return errors.New("its algorithm is " + m.Settings.Algorithm + ", this agent's is " + own.Algorithm)
			}
			return nil
		}
	}
	cfg := testConfig(1)
	cfg.Judge = judge(cfg.Self.Settings)
	a := start(t, cfg)
	cfg = testConfig(2)
	cfg.Self.Settings.Algorithm = "ring"
	cfg.Judge, cfg.Join = judge(cfg.Self.Settings), addrsOf(a)
	b := start(t, cfg)

	r := a.refuses(CauseJudge)
	wantText(t, r.Err, "algorithm is ring")
	if r.Name != "agent-2" || r.Addr != b.Addr() || r.Self {
		t.Errorf("refusal %+v", r)
	}
	wantText(t, b.refuses(CauseJudge).Err, "algorithm is bully")

	// A third agent that agrees with the first is let in, and the refused one
	// neither enters a view nor departs from one.
	cfg = testConfig(3)
	cfg.Judge, cfg.Join = judge(cfg.Self.Settings), addrsOf(b)
	c := start(t, cfg)
	for _, x := range []*agent{a, c} {
		x.sees("agent-1", "agent-3")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	v := a.until("the refusal to be over", func(v View) bool { return len(v.Refused) == 0 })
	if len(v.Departed) != 0 {
		t.Errorf("departed %v", namesOf(v.Departed))
	}
}

func TestOfTwoAgentsWithOneNameTheSeniorStays(t *testing.T) {
	t.Parallel()
	senior := start(t, testConfig(1))
	cfg := testConfig(2)
	cfg.Self.Name, cfg.Join = "agent-1", addrsOf(senior)
	junior := start(t, cfg)
	third := startJoined(t, 3, junior)

	for _, x := range []*agent{senior, third} {
		r := x.refuses(CauseName)
		wantText(t, r.Err, `name "agent-1" is taken`, senior.Addr().String(), junior.Addr().String())
		if r.Self || r.Addr != junior.Addr() {
			t.Errorf("%s: refusal %+v", x.self.Name, r)
		}
		x.until("the name to be the senior's alone", func(v View) bool { // the third knew the junior first
			return slices.Equal(namesOf(v.Members), []string{"agent-1", "agent-3"}) && find(t, v, "agent-1").Peer == senior.self.Peer
		})
	}
	r := junior.refuses(CauseName)
	if !r.Self || r.Addr != senior.Addr() {
		t.Errorf("the junior is told %+v", r)
	}
	junior.sees("agent-1", "agent-1", "agent-3")

	if err := senior.Close(); err != nil {
		t.Fatal(err)
	}
	v := third.until("the junior to take over", func(v View) bool {
		m, ok := v.Election().Named("agent-1")
		return ok && m.Peer == junior.self.Peer
	})
	if len(v.Refused) != 0 {
		t.Errorf("still refused: %+v", v.Refused)
	}
}

func TestACopyOfTheIdentityIsReported(t *testing.T) {
	t.Parallel()
	a := start(t, testConfig(1))
	cfg := testConfig(1)
	cfg.Self.Lineage, cfg.Self.JoinedAt, cfg.Join = 77, cfg.Self.JoinedAt+1, addrsOf(a)
	clone := start(t, cfg)
	r := a.refuses(CauseIdentity)
	wantText(t, r.Err, clone.Addr().String(), "this agent's identity")
	if !r.Self {
		t.Error("the refusal is not about the agent itself")
	}
	for _, x := range []*agent{a, clone} {
		if v := x.sees("agent-1"); v.Members[0].Lineage != x.self.Lineage {
			t.Errorf("the view holds boot %s instead of its own %s", v.Members[0].Lineage, x.self.Lineage)
		}
	}
}

func TestABadSignatureIsRefused(t *testing.T) {
	t.Parallel()
	a := start(t, testConfig(1))
	cfg := testConfig(2)
	cfg.Join = addrsOf(a)
	forger := start(t, testConfig(2))
	// The forger claims another name than it signed for.
	meta := slices.Clone(*forger.del.meta.Load())
	i := slices.Index(meta, '2')
	for i >= 0 && string(meta[max(0, i-6):i+1]) != "agent-2" {
		next := slices.Index(meta[i+1:], '2')
		if next < 0 {
			t.Fatal("no name in the advertisement")
		}
		i += 1 + next
	}
	meta[i] = '3'
	evil := memberlist.DefaultLocalConfig()
	evil.Name, evil.Label, evil.SecretKey = "agent-3#"+election.LineageID(2).String(), "test", testConfig(1).Key
	evil.BindAddr, evil.BindPort, evil.EnableCompression = "127.0.0.1", 0, false
	evil.Delegate = forgedMeta(meta)
	evil.LogOutput = discard{}
	list, err := memberlist.Create(evil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = list.Shutdown() }()
	if _, err := list.Join(addrsOf(a)); err != nil {
		t.Fatal(err)
	}
	r := a.refuses(CauseSignature)
	wantText(t, r.Err, "signature")
	if r.Name != "agent-3" || r.Addr.Addr() != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("refusal %+v", r)
	}
	startJoined(t, 4, a)
	a.sees("agent-1", "agent-4")
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// forgedMeta advertises whatever it is.
type forgedMeta []byte

func (f forgedMeta) NodeMeta(int) []byte             { return f }
func (forgedMeta) NotifyMsg([]byte)                  {}
func (forgedMeta) GetBroadcasts(_, _ int) [][]byte   { return nil }
func (forgedMeta) LocalState(bool) []byte            { return nil }
func (forgedMeta) MergeRemoteState(_ []byte, _ bool) {}

func TestLedgerSaysWhatTheNewestViewRefuses(t *testing.T) {
	l, now := newLedger(), time.Unix(1000, 0)
	r := func(text string) Refusal {
		return Refusal{Cause: CauseJudge, Name: "b", Addr: netip.MustParseAddrPort("10.0.0.2:1"), Err: errors.New(text)}
	}
	steps := []struct {
		refused []Refusal
		want    string
	}{
		{[]Refusal{r("x")}, "x"}, {[]Refusal{r("x")}, "x"}, {[]Refusal{r("y")}, "y"}, {nil, ""}, {[]Refusal{r("y")}, "y"},
	}
	for i, s := range steps {
		l.settle(now, s.refused)
		got := ""
		for _, r := range l.list() {
			got += r.Err.Error()
		}
		if got != s.want {
			t.Errorf("step %d: %q is refused, want %q", i, got, s.want)
		}
	}
}

// A host that was refused, and is a member now, is not refused any more.
func TestLedgerForgetsAHostThatHasBecomeAMember(t *testing.T) {
	l, now := newLedger(), time.Unix(1000, 0)
	for _, host := range []string{"10.0.0.2:7", "10.0.0.3:7"} {
		l.note(now, Refusal{Cause: CauseClusterKey, Addr: netip.MustParseAddrPort(host), Err: errors.New(host)}, false)
	}
	l.hear(now, fewNoise)
	l.arrive(netip.MustParseAddr("10.0.0.2"))
	l.settle(now, nil)
	var left []string
	for _, r := range l.list() {
		left = append(left, r.Addr.String())
	}
	if len(left) != 2 || left[1] != "10.0.0.3:0" && left[1] != "10.0.0.3:7" {
		t.Errorf("left are %v, want the other host and the noise", left)
	}
}

func TestLedgerIsBoundedAndForgetsHints(t *testing.T) {
	l, now := newLedger(), time.Unix(1000, 0)
	hint := func(i int) Refusal {
		host := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		return Refusal{Cause: CauseClusterKey, Addr: netip.AddrPortFrom(host, 0), Err: errors.New("x")}
	}
	for i := range 2 * maxHints {
		l.note(now, hint(i), false)
	}
	if n := len(l.list()); n != maxHints {
		t.Errorf("%d hints kept, want %d", n, maxHints)
	}
	l.settle(now.Add(hintFor+1), nil)
	if n := len(l.list()); n != 0 {
		t.Errorf("%d refusals kept after their time", n)
	}
}

// Strangers fill the places for strangers. A seed with another key, a member with other settings and
// the count of the noise are still reported.
func TestTrueRefusalsFindRoomAmongFalseOnes(t *testing.T) {
	l, now := newLedger(), time.Unix(1000, 0)
	for i := range 1000 {
		host := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		l.note(now.Add(time.Duration(i)), Refusal{Cause: CauseClusterKey, Addr: netip.AddrPortFrom(host, 0), Err: errors.New("a stranger")}, false)
	}
	l.hear(now, 400)
	l.settle(now, []Refusal{{Cause: CauseJudge, Name: "b", Err: errors.New("a member")}})
	seeds := maxHints + 10
	for i := range seeds {
		host := netip.AddrFrom4([4]byte{10, 1, 0, byte(i)})
		l.note(now, Refusal{Cause: CauseClusterKey, Addr: netip.AddrPortFrom(host, 0), Err: errors.New("a seed")}, true)
	}
	count := map[string]int{}
	for _, r := range l.list() {
		if r.Cause == CauseNoise {
			wantText(t, r.Err, "at least 100 datagrams")
			count["noise"]++
			continue
		}
		count[r.Err.Error()]++
	}
	if count["a member"] != 1 || count["noise"] != 1 || count["a seed"] < maxHints-1 || count["a stranger"] > 0 {
		t.Errorf("kept %v", count)
	}
}

func TestNoiseIsOneRefusalThatChangesSeldom(t *testing.T) {
	l, now, texts := newLedger(), time.Unix(1000, 0), map[string]bool{}
	for range 5000 {
		now = now.Add(time.Millisecond)
		l.hear(now, 1)
		for _, r := range l.list() {
			texts[r.Err.Error()] = true
		}
	}
	if len(texts) != 3 || len(l.list()) != 1 {
		t.Errorf("%d texts, %d refusals; want 3 (10, 100, 1000) and 1", len(texts), len(l.list()))
	}
	l.hear(now.Add(hintFor+1), fewNoise-1)
	l.settle(now.Add(hintFor+1), nil)
	if got := l.list(); len(got) != 0 {
		t.Errorf("a few datagrams later: %v", got)
	}
}
