//go:build linux

package netns_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hiccup"
	"github.com/doyen-election/doyen/testbed/netns"
	"github.com/doyen-election/doyen/testbed/observe"
)

var rounds = flag.Int("rounds", 3, "how often the leader is cut off")

const configVariable = "DOYEN_NETNS_TEST_CONFIG"

func runAgent(text string) int {
	cfg := settings.Default()
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := agent.Run(ctx, cfg, agent.Process{}, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// observed is one agent, with its watch stream's client.
type observed struct {
	name   string
	log    *bytes.Buffer
	client *client.Client
}

// scene is three agents on three hosts, and everything that their streams reported.
type scene struct {
	t       *testing.T
	network *netns.Network
	agents  []*observed
	timing  settings.Config
	mu      sync.Mutex
	changes []seen
	led     *observe.Elections // the leaderships that the same streams reported
	moved   chan struct{}      // closed and replaced at every change
}

type seen struct {
	agent int
	api.Change
}

func newScene(t *testing.T) *scene {
	network, err := netns.New(3, *seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = network.Close() })
	dir, err := os.MkdirTemp("", "doyen") // t.TempDir has too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	keyFile := filepath.Join(dir, "key")
	if err := os.WriteFile(keyFile, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lan, err := settings.Default().Resolve()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, network: network, timing: lan, led: observe.NewElections(lan.Lease), moved: make(chan struct{})}
	for i, name := range []string{"a", "b", "c"} {
		cfg := settings.Default()
		cfg.Name, cfg.DataDir, cfg.Socket = name, filepath.Join(dir, name), filepath.Join(dir, name+".run", "s") // its lease pages are in the socket's folder
		cfg.Bind, cfg.KeyFile = network.Host(i).Addr.String(), keyFile
		cfg.Voters = []string{"a", "b", "c"}
		for j := range 3 {
			if j != i {
				cfg.Join = append(cfg.Join, network.Host(j).Addr.String())
			}
		}
		s.start(network.Host(i), name, cfg)
	}
	return s
}

func (s *scene) start(host *netns.Host, name string, cfg settings.Config) {
	text, err := json.Marshal(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	o := &observed{name: name, log: &bytes.Buffer{}, client: client.New(cfg.Socket)}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), configVariable+"="+string(text))
	cmd.Stderr = o.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the thread stays in the namespace, and lives as long as the agent
		err := host.Enter()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		<-ended
	}()
	if err := <-started; err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.agents = append(s.agents, o)
	go s.watch(ctx, len(s.agents)-1, o.client, done)
	s.t.Cleanup(func() {
		stop()
		<-done
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		close(ended)
		if s.t.Failed() {
			s.t.Logf("log of %s:\n%s", name, o.log)
		}
	})
}

// watch follows one agent's stream as soon as the agent serves it.
func (s *scene) watch(ctx context.Context, agent int, c *client.Client, done chan<- struct{}) {
	defer close(done)
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for ctx.Err() == nil {
		for change, err := range c.Watch(ctx, "default", 0) {
			if err != nil {
				break
			}
			s.mu.Lock()
			s.changes = append(s.changes, seen{agent, change})
			s.led.Apply(observe.Changed{Agent: s.agents[agent].name, Change: change})
			close(s.moved)
			s.moved = make(chan struct{})
			s.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-retry.C:
		}
	}
}

// await waits until the reported changes satisfy the condition.
func (s *scene) await(what string, limit time.Duration, holds func([]seen) bool) (time.Duration, error) {
	begun := time.Now()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		ok, moved := holds(s.changes), s.moved
		s.mu.Unlock()
		if ok {
			return time.Since(begun), nil
		}
		select {
		case <-moved:
		case <-deadline.C:
			return 0, fmt.Errorf("%s: not within %s", what, limit)
		}
	}
}

// cut silently cuts an agent's host off, or mends its links.
func (s *scene) cut(agent int, off bool) {
	s.t.Helper()
	for other := range s.agents {
		if other == agent {
			continue
		}
		for _, pair := range [][2]int{{agent, other}, {other, agent}} {
			if err := s.network.SetLink(pair[0], pair[1], netns.Link{Cut: off}); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// newest returns the last change that each agent reported.
func newest(changes []seen) map[int]api.Change {
	last := map[int]api.Change{}
	for _, c := range changes {
		last[c.agent] = c.Change
	}
	return last
}

// leaderOf returns the leader of a term if all three agents name it.
func leaderOf(changes []seen) (leader int, term uint64, ok bool) {
	last := newest(changes)
	leader = -1
	for i := range 3 {
		c, told := last[i]
		if !told || c.Leader == nil || c.Term != last[0].Term {
			return -1, 0, false
		}
		if c.IsLeader {
			leader = i
		}
	}
	return leader, last[0].Term, leader >= 0
}

func TestALeaderCutOffSilentlyStopsBeforeAnotherStarts(t *testing.T) {
	t.Parallel()
	needNetworks(t)
	s := newScene(t)
	meter, err := hiccup.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer meter.Stop()
	undecided := 0
	for round := 1; round <= *rounds; {
		began := boottime.Now()
		what, err := s.cutLeaderOff()
		if overlaps := s.overlaps(); len(overlaps) > 0 {
			t.Fatalf("round %d: two leaders at once: %+v", round, overlaps)
		}
		allowed := s.timing.Heartbeat
		if errors.Is(err, errLate) {
			allowed = hiccup.Least
		}
		hiccups := meter.Between(began.Add(-s.timing.Lease), boottime.Now())
		if _, longest := hiccup.Total(hiccups); err != nil && longest >= allowed && undecided < *rounds {
			undecided++
			t.Logf("round %2d undecided, since %s: %v", round, hiccup.Describe(hiccups), err)
			continue
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		t.Logf("round %2d: %s", round, what)
		round++
	}
}

// ask asks an agent until when it may lead.
func (s *scene) ask(agent int) {
	o := s.agents[agent]
	if told, err := observe.Ask(s.t.Context(), o.client, o.name, "default"); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.led.Apply(told)
	}
}

// overlaps judges as scenarios do: an agent that got no processor when its lease ended reports that
// late. It counts as leading until the deadline that it had reported.
func (s *scene) overlaps() []observe.OverlapSpan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.led.Overlaps(boottime.Now())
}

// errLate reports that the old leader stopped after another had begun to lead.
var errLate = errors.New("the old leader stopped late")

// cutLeaderOff cuts the leader off until another agent leads, and then mends the links.
func (s *scene) cutLeaderOff() (string, error) {
	var old, before int
	var term uint64
	if _, err := s.await("all agree", 10*time.Second, func(cs []seen) (ok bool) {
		old, term, ok = leaderOf(cs)
		before = len(cs)
		return ok
	}); err != nil {
		return "", err
	}
	s.cut(old, true)
	defer s.cut(old, false)
	s.ask(old)
	var stopped, started int64
	took, err := s.await("another leads and the old one stopped", 10*time.Second, func(cs []seen) bool {
		stopped, started = 0, 0
		for _, c := range cs[before:] {
			if c.agent == old && !c.IsLeader && stopped == 0 {
				stopped = c.BoottimeNS
			}
			if c.agent != old && c.IsLeader && c.Term > term && started == 0 {
				started = c.BoottimeNS
			}
		}
		return stopped != 0 && started != 0
	})
	if err != nil {
		return "", err
	}
	if stopped >= started {
		return "", fmt.Errorf("%w, by %s", errLate, time.Duration(stopped-started))
	}
	mended := time.Now() // the first packets pass before cut returns
	s.cut(old, false)
	_, err = s.await("all agree after the mend", 2*time.Second-time.Since(mended), func(cs []seen) bool {
		_, now, ok := leaderOf(cs)
		return ok && now > term
	})
	return fmt.Sprintf("new leader after %4d ms, the old one stopped %3d ms before it; agreed %4d ms after the mend",
		took.Milliseconds(), time.Duration(started-stopped).Milliseconds(), time.Since(mended).Milliseconds()), err
}
