package doctor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
)

// patient returns a doctor of an agent that would use a directory of the test.
func patient(t *testing.T, change ...func(*settings.Config)) *Doctor {
	t.Helper()
	dir, err := os.MkdirTemp("", "doctor") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // independent of the umask
		t.Fatal(err)
	}
	c := settings.Default()
	c.Name, c.DataDir, c.Socket = "a", filepath.Join(dir, "data"), filepath.Join(dir, "s")
	c.GossipPort, c.PeerPort = 0, 0
	for _, f := range change {
		f(&c)
	}
	d := New(c, nil, "")
	d.root = dir
	d.show = func(context.Context, string) (string, error) { return "", errors.New("no systemd") }
	d.resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no name service") }
	return d
}

// file writes a file below the directory that is the doctor's root.
func (d *Doctor) file(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(d.root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// expect demands one finding with this result and text. It must have advice unless it is OK.
func expect(t *testing.T, found []Finding, result, text string) {
	t.Helper()
	if len(found) != 1 || found[0].Result != result || !strings.Contains(found[0].What+": "+found[0].Why, text) || (found[0].Do == "") != (result == OK) {
		t.Errorf("found %+v, want one %s with %q", found, result, text)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// closed returns an address at which nobody listens.
func closed(t *testing.T) string {
	l := listen(t)
	l.Close()
	return l.Addr().String()
}

func TestMistakesOfTheConfigurationAreFindings(t *testing.T) {
	expect(t, CheckConfig([]Mistake{{Flag: "lease", Problem: "too long", Hint: "shorten it"}}), Error, "--lease is wrong: too long")
	expect(t, CheckConfig([]Mistake{{Problem: "doyen.yaml:1: what?", Hint: "correct it"}}), Error, "doyen.yaml:1: what?")
	expect(t, CheckConfig([]Mistake{{Flag: "data-dir", Problem: "belongs to user b", Hint: "check as b", Owner: 7}}), Warning, "belongs to user b")
	if found := CheckConfig([]Mistake{{Flag: "key-file"}}); len(found) != 0 {
		t.Errorf("the key has its own check, but found %+v", found)
	}
}

func TestAPortInUseIsTheAgentsOrAMistake(t *testing.T) {
	l := listen(t)
	port := l.Addr().(*net.TCPAddr).Port
	d := patient(t, func(c *settings.Config) { c.PeerPort = port })
	found := d.checkPorts(t.Context())
	if len(found) != 3 || found[0].Result != OK || found[1].Result != OK {
		t.Errorf("free ports: %+v", found)
	}
	expect(t, found[2:], Error, "is in use")
	d.silent = true
	expect(t, d.checkPorts(t.Context())[2:], OK, "agent that does not answer")
	d.silent, d.own.ID = false, "A"
	d.members = []api.Member{{ID: "B", PeerAddr: l.Addr().String()}}
	expect(t, d.checkPorts(t.Context())[2:], Error, "is in use")
	d.members = append(d.members, api.Member{ID: "A", PeerAddr: l.Addr().String()})
	expect(t, d.checkPorts(t.Context())[2:], OK, "in use by the agent of this host")
}

func TestTheNamesOfOtherAgentsAreLookedUp(t *testing.T) {
	d := patient(t, func(c *settings.Config) { c.Join = []string{"b.example:7"} })
	expect(t, d.checkNames(t.Context()), Error, "no name service")
	var took time.Duration
	d.tick = func() time.Duration { took *= 2; return took }
	d.resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "b.example" {
			t.Errorf("looked up %q", host)
		}
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
	}
	expect(t, d.checkNames(t.Context()), OK, "192.0.2.1")
	expect(t, patient(t).checkNames(t.Context()), OK, "no --join needs the name service")
	took = time.Second
	expect(t, d.checkNames(t.Context()), Warning, "it took 2s")
	d.resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, nil }
	expect(t, d.checkNames(t.Context()), Error, "it has no address")
	for join, want := range map[string]string{"h": "h", "h:1": "h", "::1": "::1", "[::1]:1": "::1", "[::1]": "::1"} {
		if got, _ := parts(join); got != want {
			t.Errorf("the host of %q is %q", join, got)
		}
	}
}

func TestBeforeTheStartTheAgentsToJoinAreDialled(t *testing.T) {
	there := listen(t).Addr().String()
	d := patient(t, func(c *settings.Config) { c.Join = []string{there} })
	expect(t, d.checkPeers(t.Context()), OK, "answers at TCP port")
	d.config.Join = []string{closed(t)}
	expect(t, d.checkPeers(t.Context()), Warning, "connection refused")
	d.own.ID = "A" // the agent runs, but has joined no other one
	expect(t, d.checkPeers(t.Context()), Warning, "connection refused")
	d.config.Join = []string{"not resolved", net.JoinHostPort("127.0.0.1", "0")} // the second address is this agent's
	expect(t, d.checkPeers(t.Context()), OK, "heard of no other one")
}

func TestEachPortToAnotherAgentIsCheckedInBothDirections(t *testing.T) {
	there := listen(t).Addr().String()
	d := patient(t)
	d.own.ID = "A"
	expect(t, d.checkPeers(t.Context()), OK, "heard of no other one")
	good := api.Member{Name: "b", ID: "B", GossipAddr: there, PeerAddr: there, Status: api.StatusAlive, Connected: true}
	reaches := []api.Dial{{Port: api.DialGossipTCP}, {Port: api.DialPeerTCP}, {Port: api.DialGossipUDP}}
	own := []api.Dial{{Port: api.DialGossipUDP, Addr: there}}
	check := func(result, text string, change func(m *api.Member, back *api.AgentReport)) {
		t.Helper()
		m, back := good, api.AgentReport{ID: "B", Reached: true, Dials: slices.Clone(reaches)}
		change(&m, &back)
		d.members, d.agents = []api.Member{{ID: "A"}, m}, []api.AgentReport{{ID: "A", Dials: own}, back}
		expect(t, d.checkPeers(t.Context()), result, text)
	}
	d.config.Join = []string{there} // it has joined that agent
	check(OK, "from here, and back", func(*api.Member, *api.AgentReport) {})
	d.config.Join = nil
	check(Error, "this host does not reach b at gossip-tcp", func(m *api.Member, _ *api.AgentReport) { m.GossipAddr = closed(t) })
	check(Error, "this host does not reach b at peer-tcp", func(m *api.Member, _ *api.AgentReport) { m.PeerAddr = closed(t) })
	check(Error, "not connected to b", func(m *api.Member, _ *api.AgentReport) { m.Connected = false })
	check(Warning, "b is dead", func(m *api.Member, _ *api.AgentReport) { m.Status = api.StatusDead })
	for state, advises := range map[string]bool{api.QuorumLost: false, api.QuorumExists: true} { // only a majority can remove a voter
		d.own.Quorum.State, d.members = state, []api.Member{{Name: "b", ID: "B", Status: api.StatusDead}}
		if found := d.checkPeers(t.Context()); len(found) != 1 || strings.Contains(found[0].Do, "voters remove b") != advises {
			t.Errorf("quorum %s: %+v", state, found)
		}
	}
	check(Warning, "b could not be asked", func(_ *api.Member, back *api.AgentReport) { back.Reached = false })
	check(OK, "the way back can't be checked", func(_ *api.Member, back *api.AgentReport) { back.Dials = nil })
	check(Error, "b does not reach this host at gossip-tcp", func(_ *api.Member, back *api.AgentReport) { back.Dials[0].Error = "no answer" })
	check(Error, "b does not reach this host at peer-tcp", func(_ *api.Member, back *api.AgentReport) { back.Dials[1].Error = "no answer" })
	check(Warning, "b does not reach this host at gossip-udp", func(_ *api.Member, back *api.AgentReport) { back.Dials[2].Error = "no ping" })
	own[0].Error = "3 pings were not answered"
	check(Warning, "this host does not reach b at gossip-udp", func(*api.Member, *api.AgentReport) {})
}

func TestTheDiskIsMeasuredByWrites(t *testing.T) {
	d := patient(t)
	var now, step time.Duration
	d.tick = func() time.Duration { now += step; return now }
	step = 10 * time.Millisecond
	expect(t, d.checkDisk(t.Context()), OK, "20 writes with fsync in "+filepath.Dir(d.config.DataDir)+": median 10ms, worst 10ms")
	step = d.config.Heartbeat/4 + time.Millisecond
	expect(t, d.checkDisk(t.Context()), Warning, "a quarter of the heartbeat")
	step = 3 * time.Second
	expect(t, d.checkDisk(t.Context()), Warning, "1 writes with fsync")
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(d.config.DataDir), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	d.config.DataDir = "/proc/self/none"
	expect(t, d.checkDisk(t.Context()), Error, "can't write")
	d.mistakes = []Mistake{{Flag: "data-dir"}}
	if found := d.checkDisk(t.Context()); found != nil {
		t.Errorf("reported again: %+v", found)
	}
}

func TestTheSlewLimitOfChronyIsComparedWithTheDriftThatALeaseAllows(t *testing.T) {
	d := patient(t)
	expect(t, d.checkClock(t.Context()), OK, "not installed")
	d.file(t, "usr/sbin/chronyd", "")
	expect(t, d.checkClock(t.Context()), Warning, "up to 8.33 % (its default)")
	d.file(t, "etc/chrony/chrony.conf", "# maxslewrate 1\npool x iburst\nMaxSlewRate 1000\n")
	expect(t, d.checkClock(t.Context()), OK, "up to 0.10 % (maxslewrate in /etc/chrony/chrony.conf)")
	d.file(t, "etc/chrony/chrony.conf", "maxslewrate 10000")
	expect(t, d.checkClock(t.Context()), Warning, "up to 1.00 %")
	d.file(t, "etc/chrony/chrony.conf", "maxslewrate 10000\ninclude /etc/chrony/chrony.conf\nconfdir /etc/chrony/conf.d\n")
	d.file(t, "etc/chrony/conf.d/slow.conf", "maxslewrate 500")
	expect(t, d.checkClock(t.Context()), OK, "/etc/chrony/conf.d/slow.conf")
}

func TestTheRightsOfTheSocketAreChecked(t *testing.T) {
	d := patient(t)
	path := d.config.Socket
	expect(t, d.checkSockets(t.Context()), OK, "is to be made")
	if os.Geteuid() != 0 {
		d.config.Socket = "/none/s"
		expect(t, d.checkSockets(t.Context()), Warning, "can't be made")
		d.config.Socket = "/none"
		expect(t, d.checkSockets(t.Context()), Error, "can't be made")
		d.config.Socket = path
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for mode, want := range map[os.FileMode]string{0o660: OK, 0o666: Warning} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		expect(t, d.checkSockets(t.Context()), want, path)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	d.config.SocketMode = "0666"
	expect(t, d.checkSockets(t.Context()), OK, "mode 0666")
	d.config.SocketGroup = "4001"
	expect(t, d.checkSockets(t.Context()), Warning, "it is configured as 0666 and group 4001")
	d.config.SocketGroup = ""
	l.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, d.checkSockets(t.Context()), Error, "is not a socket")
	for mode, want := range map[os.FileMode]string{0o777: Error, 0o775: Warning} {
		if err := os.Chmod(filepath.Dir(path), mode); err != nil {
			t.Fatal(err)
		}
		expect(t, d.checkSockets(t.Context()), want, "can be written by others")
	}
}

func TestTheUnitIsChecked(t *testing.T) {
	d := patient(t)
	expect(t, d.checkUnit(t.Context()), OK, "no unit doyen.service")
	var asked string
	is := func(lines ...string) {
		d.show = func(_ context.Context, unit string) (string, error) {
			asked = unit
			return "LoadState=loaded\n" + strings.Join(lines, "\n") + "\n", nil
		}
	}
	is("KillMode=mixed", "Restart=on-failure", "RuntimeDirectory=doyen", "RuntimeDirectoryPreserve=restart")
	expect(t, d.checkUnit(t.Context()), OK, "doyen.service: KillMode=mixed")
	is("KillMode=mixed", "Restart=on-failure", "RuntimeDirectory=doyen", "RuntimeDirectoryPreserve=no")
	expect(t, d.checkUnit(t.Context()), Warning, "RuntimeDirectoryPreserve=no")
	is("KillMode=mixed", "Restart=on-failure", "UnitFileState=disabled")
	expect(t, d.checkUnit(t.Context()), Warning, "nothing starts the agent when this host boots")
	is("KillMode=control-group", "Restart=always", "RuntimeDirectoryPreserve=no")
	expect(t, d.checkUnit(t.Context()), Warning, "KillMode=control-group")
	is("KillMode=mixed", "Restart=no", "RuntimeDirectoryPreserve=no")
	expect(t, d.checkUnit(t.Context()), Warning, "Restart=no")
	d.own = api.Agent{ID: "A", PID: 7}
	d.file(t, "proc/7/cgroup", "0::/system.slice/doyen-b.service\n")
	if d.checkUnit(t.Context()); asked != "doyen-b.service" {
		t.Errorf("asked for %s", asked)
	}
}

func TestOnlyTheAgentMayReadItsKey(t *testing.T) {
	d := patient(t)
	expect(t, d.checkKey(t.Context()), OK, "none is needed")
	d.config.Join = []string{"b"}
	expect(t, d.checkKey(t.Context()), Warning, "no cluster key")
	d.file(t, "key", strings.Repeat("A", 43)+"=\n")
	d.config.KeyFile = filepath.Join(d.root, "key")
	expect(t, d.checkKey(t.Context()), OK, "has 1")
	if err := os.Chmod(d.config.KeyFile, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, d.checkKey(t.Context()), Error, "can be read by others")
	if err := os.Chmod(d.config.KeyFile, 0o600); err != nil {
		t.Fatal(err)
	}
	d.own.ID, d.agents = "A", []api.AgentReport{{Name: "a", ID: "A", Keys: settings.DescribeKeys([][]byte{make([]byte, 32)})}}
	expect(t, d.checkKey(t.Context()), OK, "has 1")
	d.agents[0].Keys = settings.DescribeKeys([][]byte{[]byte("another one")})
	expect(t, d.checkKey(t.Context()), Warning, "uses other keys")
	d.mistakes = []Mistake{{Flag: "key-file", Problem: "agent.yaml:3: wrong", Hint: "correct it"}}
	expect(t, d.checkKey(t.Context()), Error, "agent.yaml:3: wrong")
}

func TestTheRecordIsToBeInMemory(t *testing.T) {
	d := patient(t)
	d.own = api.Agent{ID: "A", Warnings: []api.Warning{{Code: "no_record"}}}
	if found := d.checkRecord(t.Context()); found != nil {
		t.Errorf("the agent has warned already: %+v", found)
	}
	d.own.Warnings = nil
	expect(t, d.checkRecord(t.Context()), OK, "goes on leading")
}

// Nonsense as an answer, or an answer to another question, is a finding.
func TestARunningAgentIsAsked(t *testing.T) {
	d := patient(t)
	expect(t, d.checkAgent(t.Context()), OK, "none runs")
	l, err := net.Listen("unix", d.config.Socket)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers[r.URL.RequestURI()] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(answers[r.URL.RequestURI()]))
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	expect(t, d.checkAgent(t.Context()), Error, "can't be asked")
	answers["/v1/agent"] = `{"name":"a","id":"A","cluster":"doyen","pid":7,"version":"9","quorum":{"state":"exists"}}`
	expect(t, d.checkAgent(t.Context())[1:], Error, "does not answer every question")
	answers["/v1/members"], answers["/v1/agents?dial=back"] = `{"members":[{"name":"b","id":"B"}]}`, `{"agents":[{"name":"b","id":"B","reached":true}]}`
	expect(t, d.checkAgent(t.Context()), OK, "a runs, pid 7, version 9, quorum exists")
	if len(d.members) != 1 || len(d.agents) != 1 {
		t.Errorf("%+v %+v", d.members, d.agents)
	}
	d.config.Name = "b"
	expect(t, d.checkAgent(t.Context())[1:], Warning, "it is a of cluster doyen, and the configuration describes b")
	d.config.Name = "a"
	answers["/v1/agent"] = `{"name":"a","id":"A","cluster":"doyen","warnings":[{"code":"quorum_lost","message":"b is missing"}]}`
	expect(t, d.checkAgent(t.Context())[1:], Warning, "quorum_lost: b is missing")
}
