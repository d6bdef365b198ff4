package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/testbed/executable"
)

const patience = 30 * time.Second

// stderr collects what an agent writes, and closes seen when want accepts it.
type stderr struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	want func(string) bool // called with everything written so far; nil: nothing is awaited
	seen chan struct{}
}

func newStderr(want string) *stderr {
	return &stderr{want: func(all string) bool { return strings.Contains(all, want) }, seen: make(chan struct{})}
}

func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(p)
	if s.want != nil && s.want(s.buf.String()) {
		s.want = nil
		close(s.seen)
	}
	return len(p), nil
}

func (s *stderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// wait returns once the agent has written the text.
func (s *stderr) wait(t *testing.T, text string) {
	t.Helper()
	s.mu.Lock()
	seen := make(chan struct{})
	s.want, s.seen = func(all string) bool { return strings.Contains(all, text) }, seen
	s.mu.Unlock()
	_, _ = s.Write(nil) // the text may have been written already
	select {
	case <-seen:
	case <-time.After(patience):
		t.Fatalf("the agent does not write %q:\n%s", text, s)
	}
}

// lone is the configuration of an agent that is alone.
func lone(t *testing.T) settings.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "doyen") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := settings.Default()
	c.Name, c.Profile, c.Lease = "a", "lan", 3*time.Second // a busy machine must not cost a leadership
	c.DataDir, c.Socket = filepath.Join(dir, "data"), filepath.Join(dir, "run", "s")
	c.GossipPort, c.PeerPort = 0, 0
	return c
}

// start runs an agent until the returned function is called. That function returns the error of Run.
func start(t *testing.T, c settings.Config, around ...agent.Process) (*http.Client, *stderr, func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, ended := newStderr(" ready: "), make(chan error, 1)
	besides := func() {}
	p := append(around, agent.Process{})[0]
	if c.Acts() || p.Reread != nil {
		besides = actBeside(c, &p, out)
	}
	go func() { ended <- agent.Run(ctx, c, p, out) }()
	stop := sync.OnceValue(func() error {
		cancel()
		defer besides()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return errors.New("the agent does not stop")
		}
	})
	t.Cleanup(func() { _ = stop() })
	select {
	case <-out.seen:
	case err := <-ended:
		ended <- err
		t.Fatalf("the agent ended: %v\n%s", err, out)
	case <-time.After(patience):
		t.Fatalf("the agent is not ready\n%s", out)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.Socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}, out, stop
}

// follow watches an election until the function accepts a change, and returns that change.
func follow(t *testing.T, c *http.Client, until func(api.Change) bool) api.Change {
	t.Helper()
	response, err := c.Get("http://d/v1/elections/default/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := json.NewDecoder(response.Body)
	for {
		var change api.Change
		if err := lines.Decode(&change); err != nil {
			t.Fatalf("the watch ended: %v", err)
		}
		if until(change) {
			return change
		}
	}
}

func leads(c api.Change) bool { return c.IsLeader }

func get(t *testing.T, c *http.Client, path string) (int, string) {
	t.Helper()
	response, err := c.Get("http://d" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestAnAgentAloneLeadsAnswersAndStopsCleanly(t *testing.T) {
	c := lone(t)
	c.HTTP = "127.0.0.1:0"
	client, out, stop := start(t, c)
	if got := follow(t, client, leads); got.Term != 1 || got.Leader.Name != "a" {
		t.Errorf("leads as %+v", got)
	}
	for path, want := range map[string]string{
		"/leader":               "a\n",
		"/livez":                "ok\n",
		"/readyz":               "ok\n",
		"/metrics":              `doyen_is_leader{cluster="doyen",election="default"} 1`,
		"/v1/agent":             `"state":"exists"`,
		"/v1/members":           `"voter":true,"candidate":true,"connected":true`,
		"/v1/elections":         `"state":"leading"`,
		"/v1/elections/default": `"authority":"lease"`,
		"/v1/elections/default?consistency=quorum": `"authority":"quorum"`,
	} {
		if status, body := get(t, client, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q, want 200 with %q", path, status, body, want)
		}
	}
	if err := stop(); err != nil {
		t.Fatalf("stop: %v\n%s", err, out)
	}
	if !strings.Contains(out.String(), "handed over") {
		t.Errorf("no hand-over in\n%s", out)
	}
	if _, err := os.Lstat(c.Socket); err == nil {
		t.Error("the socket is still there")
	}
}

// An agent that was stopped and started again is another holder, with a higher term.
func TestARestartedAgentLeadsInAHigherTerm(t *testing.T) {
	c := lone(t)
	client, _, stop := start(t, c)
	first := follow(t, client, leads)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	client, _, _ = start(t, c)
	if second := follow(t, client, leads); second.Term <= first.Term {
		t.Errorf("term %d after %d", second.Term, first.Term)
	}
}

func TestLeaveStopsTheAgent(t *testing.T) {
	c := lone(t)
	client, out, stop := start(t, c)
	follow(t, client, leads)
	response, err := client.Post("http://d/v1/leave", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var outcome api.Outcome
	if err := json.NewDecoder(response.Body).Decode(&outcome); err != nil || !outcome.Done {
		t.Fatalf("%+v, %v\n%s", outcome, err, out)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestTheHookRunsOnceForEachEnd(t *testing.T) {
	c := lone(t)
	trail := filepath.Join(filepath.Dir(c.DataDir), "trail")
	c.OnChange = executable.Script(t, `echo "$DOYEN_EVENT $DOYEN_TERM" >> `+trail)
	client, _, stop := start(t, c)
	follow(t, client, leads)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(trail)
	if err != nil || !strings.HasPrefix(string(text), "none 0\n") || !strings.HasSuffix(string(text), "none 1\n") {
		t.Errorf("the hook wrote %q, %v; want none 0 at the start and none 1 at the end", text, err)
	}
	if strings.Count(string(text), "none") != 2 {
		t.Errorf("the end was told more than once: %q", text)
	}
}

func TestWhatIsInUseStopsTheStartByName(t *testing.T) {
	t.Parallel()
	first := lone(t)
	client, out, _ := start(t, first)
	follow(t, client, leads)
	peers, gossip := ports(t, out.String())
	dead := lone(t)
	if err := os.MkdirAll(filepath.Dir(dead.Socket), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dead.Socket, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		change func(*settings.Config)
		flag   string
		says   string
	}{
		{"data dir", func(c *settings.Config) { c.DataDir = first.DataDir }, "data-dir", "in use by agent a (pid "},
		{"socket", func(c *settings.Config) { c.Socket = first.Socket }, "socket", "in use by"},
		{"no socket", func(c *settings.Config) { c.Socket = dead.Socket }, "socket", "not a socket"},
		{"peer port", func(c *settings.Config) { c.PeerPort = peers }, "peer-port", "in use"},
		{"gossip port", func(c *settings.Config) { c.GossipPort = gossip }, "gossip-port", "in use"},
		{"read-only listener", func(c *settings.Config) { c.HTTP = net.JoinHostPort("127.0.0.1", strconv.Itoa(peers)) }, "http", "in use"},
		{"bind", func(c *settings.Config) {
			c.Bind, c.Advertise, c.Voters = "192.0.2.1", "192.0.2.1", []string{"a"}
			withKey(t, c, 'a')
		}, "bind", "not an address of this host"},
	}
	for _, c := range cases {
		cfg := lone(t)
		c.change(&cfg)
		err := agent.Run(t.Context(), cfg, agent.Process{}, io.Discard)
		var bad *settings.Error
		if !errors.As(err, &bad) || bad.Flag != c.flag || !strings.Contains(bad.Problem, c.says) {
			t.Errorf("%s: got %v, want --%s: …%s…", c.name, err, c.flag, c.says)
		}
	}
	if text, err := os.ReadFile(dead.Socket); err != nil || string(text) != "mine" {
		t.Errorf("the file at the socket's path is now %q, %v", text, err)
	}
	if _, body := get(t, client, "/livez"); body != "ok\n" {
		t.Errorf("the first agent suffered: %q", body)
	}
}

// ports reads the ports from the ready line.
func ports(t *testing.T, text string) (peers, gossip int) {
	t.Helper()
	_, line, _ := strings.Cut(text, " peers ")
	line, _, _ = strings.Cut(line, "\n")
	p, g, ok := strings.Cut(line, ", gossip ")
	peer, err1 := net.ResolveTCPAddr("tcp", p)
	gos, err2 := net.ResolveTCPAddr("tcp", g)
	if !ok || err1 != nil || err2 != nil {
		t.Fatalf("no ports in %q", line)
	}
	return peer.Port, gos.Port
}

func TestADamagedStateStopsTheStart(t *testing.T) {
	c := lone(t)
	_, _, stop := start(t, c)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.DataDir, "state")
	if err := os.Truncate(path, 30); err != nil {
		t.Fatal(err)
	}
	err := agent.Run(t.Context(), c, agent.Process{}, io.Discard)
	var bad *settings.Error
	if !errors.As(err, &bad) || bad.Flag != "data-dir" || !strings.Contains(bad.Problem, "cut short") {
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 30 {
		t.Errorf("the damaged file was touched: %v, %v", info, err)
	}
}

func TestADeadSocketIsReplaced(t *testing.T) {
	t.Parallel()
	c := lone(t)
	if err := os.MkdirAll(filepath.Dir(c.Socket), 0o750); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	client, _, _ := start(t, c)
	if status, _ := get(t, client, "/livez"); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if info, err := os.Stat(c.Socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// three starts three agents on loopback, and returns once all name the same leader.
func three(t *testing.T, change func(*settings.Config)) (clients []*http.Client, stops []func() error, first api.Change) {
	t.Helper()
	var join []string
	for _, name := range []string{"a", "b", "c"} {
		c := lone(t)
		c.Name, c.Voters, c.Join = name, []string{"a", "b", "c"}, join
		change(&c)
		client, out, stop := start(t, c)
		clients, stops = append(clients, client), append(stops, stop)
		_, gossip := ports(t, out.String())
		join = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(gossip))}
	}
	led := func(c api.Change) bool { return c.Leader != nil }
	first = follow(t, clients[0], led)
	for _, c := range clients[1:] {
		if got := follow(t, c, led); got.Leader.Name != first.Leader.Name || got.Term != first.Term {
			t.Fatalf("one names %+v, another %+v", first, got)
		}
	}
	return clients, stops, first
}

// Three agents on loopback: the main job, end to end.
func TestThreeAgentsElectTransferAndFailOver(t *testing.T) {
	t.Parallel()
	clients, stops, first := three(t, func(*settings.Config) {})
	leader := int(first.Leader.Name[0] - 'a')
	target := (leader + 1) % 3
	response, err := clients[leader].Post("http://d/v1/elections/default/transfer", "application/json",
		strings.NewReader(`{"to":"`+string(rune('a'+target))+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var outcome api.Outcome
	if err := json.NewDecoder(response.Body).Decode(&outcome); err != nil || !outcome.Done || outcome.Leader.Name != string(rune('a'+target)) {
		t.Fatalf("transfer: %+v, %v", outcome, err)
	}
	if err := stops[target](); err != nil {
		t.Fatal(err)
	}
	last := follow(t, clients[leader], func(c api.Change) bool { return c.Leader != nil && c.Term > outcome.Term })
	if last.Leader.Name == string(rune('a'+target)) {
		t.Errorf("the stopped agent leads: %+v", last)
	}
}
