package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

const snippetPatience = time.Minute

// snippet is a block of docs/api.md that a reader may copy and run.
type snippet struct {
	line     int // its line in the file
	language string
	text     string
	file     string // the file's name, for a module that others import
}

func snippets(t *testing.T) []snippet {
	t.Helper()
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []snippet
	for _, at := range regexp.MustCompile("(?ms)^```(sh|python|js)\n(.*?)^```$").FindAllSubmatchIndex(page, -1) {
		s := snippet{line: 1 + bytes.Count(page[:at[0]], []byte("\n")), language: string(page[at[2]:at[3]]), text: string(page[at[4]:at[5]])}
		if named := regexp.MustCompile("`(\\w+\\.py)`:\\s*$").FindSubmatch(page[:at[0]]); named != nil {
			s.file = string(named[1])
		}
		found = append(found, s)
	}
	if len(found) < 20 {
		t.Fatalf("found %d snippets: the search is broken", len(found))
	}
	return found
}

// play describes how to run a snippet that does not simply run to its end.
type play struct {
	has    string                  // text that is only in this snippet
	before func(*testing.T, *mesh) // prepares what the snippet needs
	lines  int                     // how much output is enough of a snippet that never ends
	want   string                  // a regular expression for the output
	after  func(*testing.T, *mesh)
}

// plays are tried in order. The first that fits is used.
func plays() []play {
	aLeads := func(t *testing.T, m *mesh) { m.lead(t, "a") }
	aLeadsWithAll := func(t *testing.T, m *mesh) {
		m.lead(t, "a")
		m.until(t, "a reaches all voters", func(ctx context.Context) bool {
			a, err := m.client("a").Agent(ctx)
			return err == nil && a.Quorum.State == api.QuorumExists
		})
	}
	stands := func(t *testing.T, m *mesh) { m.stand(t, "payments") }
	return []play{
		{has: "S=/run/doyen/doyen.sock\n", want: `^$`},
		{has: "/watch |\n", lines: 1, want: `^snapshot \w+ term \d+\n`},
		{has: "/watch", lines: 1, want: `"type":"(snapshot|lagged)"`},
		{has: "consistency=quorum", want: `"authority":"quorum"`},
		{has: "by hand", lines: 1, want: `^start, with token \d+\n$`},
		{has: "meta=\"python\"", lines: 2, want: `^(acts with token \d+\n)+$`},
		{has: `meta: "node"`, lines: 2, want: `^(acts with token \d+\n)+$`},
		{has: "/campaign\n", lines: 2, want: `^{"type":"candidate".*\n{"type":"elected"`},
		{has: "-d '{\"term\":1}'", before: func(t *testing.T, m *mesh) { m.stand(t, "new") }, want: `"done":true`},
		{has: "paid until", before: func(t *testing.T, m *mesh) { m.stand(t, "paid") }, want: `"seq":\d+`},
		{has: "/word\n", want: `"word":null`},
		{has: "/v1/jobs\n", before: func(t *testing.T, m *mesh) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			once := &exec.Cmd{Path: self, Args: []string{"doyen", "once", "payroll/2026-11", "--", "true"}, Env: append(os.Environ(), "DOYEN_SOCKET="+m.socket("a"))}
			if out, err := once.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}, want: `"election":"payroll","kind":"series","done":"2026-11"`},
		{has: "/v1/campaigns\n", before: stands, want: `"election":"payments".*"meta":"test"`},
		{has: "/resign", before: aLeads, want: `"done":true`},
		{has: "/transfer", before: aLeads, want: `"done":true.*"name":"b"`},
		{has: `{"on":true}`, before: aLeads, want: `"done":true`, after: func(t *testing.T, m *mesh) {
			if _, err := m.client("a").Drain(t.Context(), false); err != nil {
				t.Error(err)
			}
		}},
		{has: "/v1/leave", want: `"done":true`, after: func(t *testing.T, m *mesh) { m.ended(t, "a"); m.start(t, "a"); m.lead(t, "a") }},
		{has: `{"remove":"d"}`, before: func(t *testing.T, m *mesh) { m.addVoter(t, "d") }, want: `"voters":\[.*"next":\[\]`},
		{has: "%{http_code}", before: func(t *testing.T, m *mesh) { m.lead(t, "b") }, want: `^200\n$`},
		{has: "run-the-nightly-job", before: aLeads, want: `^the nightly job\n$`},
		{has: "for step in 1 2 3", before: aLeads, want: `(?s)^step 1 under term \d+\n.*step 3`},
		{has: "for change in changes()", before: aLeadsWithAll, lines: 3, want: `(?s)^may act under term \d+\nquorum: exists\nsnapshot a \d+\n`},
		{has: "lease.held()", before: aLeads, want: `^leads in term \d+\n$`},
	}
}

// Every snippet of docs/api.md does what the page says. Only the paths, addresses and the campaign are
// replaced.
func TestEverySnippetOfTheAPIsPageRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("needs Linux's loopback addresses and some seconds for real agents: not with -short; CI runs it")
	}
	for _, program := range []string{"curl", "python3", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed, which the snippets need", program)
		}
	}
	m := newMesh(t)
	m.form(t)
	played := map[string]bool{}
	for _, s := range snippets(t) {
		p := play{want: `.`}
		if i := slices.IndexFunc(plays(), func(p play) bool { return strings.Contains(s.text, p.has) }); i >= 0 {
			p = plays()[i]
			played[p.has] = true
		}
		if _, err := exec.LookPath("node"); s.language == "js" && err != nil {
			continue
		}
		if s.file != "" {
			m.write(t, s.file, s.text)
			p = play{want: `^$`} // a module prints nothing
		}
		t.Run(fmt.Sprintf("line %d", s.line), func(t *testing.T) {
			if p.before != nil {
				p.before(t, m)
			}
			said := m.run(t, s, p.lines)
			if !regexp.MustCompile(p.want).MatchString(said) || strings.Contains(said, `{"error"`) {
				t.Errorf("%s\nsaid %q, want %s", s.text, said, p.want)
			}
			if p.after != nil {
				p.after(t, m)
			}
		})
	}
	for _, p := range plays() {
		if !played[p.has] {
			t.Errorf("no snippet has %q any more", p.has)
		}
	}
}

// mesh is three agents a, b and c, with what the snippets need.
type mesh struct {
	dir    string
	net    string // the first three numbers of the agents' addresses
	host   int    // one less than the last number of a's address
	agents map[string]*exec.Cmd
	more   []string // flags of each agent
	lease  string
	group  *exec.Cmd // the leader of the agents' process group; it kills the group when this process ends
	record string    // a's record, if a has a keeper
	// campaign replaces the campaign in the page.
	campaign string
}

// meshes counts the meshes of this process, so that each gets other addresses.
var meshes atomic.Uint32

func newMesh(t *testing.T) *mesh {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	pid := os.Getpid()
	m := &mesh{dir: dir, lease: "3s", net: fmt.Sprintf("127.%d.%d", 64+pid>>8&63, pid&255),
		host: int(meshes.Add(1)%60) * 4, agents: map[string]*exec.Cmd{}}
	m.group = exec.Command("/bin/sh", "-c", "trap '' HUP; read end; kill -9 0") // a group with a frozen process also gets SIGHUP
	m.group.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := m.group.StdinPipe(); err != nil { // nobody writes to the pipe
		t.Fatal(err)
	}
	started := make(chan error)
	go func() { started <- m.group.Start() }() // on another thread: the shell of the test's thread may hang
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	m.write(t, "run-the-nightly-job", "#!/bin/sh\necho the nightly job\n")
	return m
}

func (m *mesh) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (m *mesh) addr(name string) string {
	return fmt.Sprintf("%s.%d", m.net, m.host+1+int(name[0]-'a'))
}

func (m *mesh) socket(name string) string { return filepath.Join(m.dir, name, "doyen.sock") }

func (m *mesh) client(name string) *client.Client { return client.New(m.socket(name)) }

// form starts the agents and waits until a leads.
func (m *mesh) form(t *testing.T) {
	t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		m.start(t, name)
	}
	m.lead(t, "a")
}

// start starts an agent; the first three are the voters.
func (m *mesh) start(t *testing.T, name string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"doyen", "agent", "--keeper=false", "--name", name, "--profile", "lan", "--lease", m.lease, "--bind", m.addr(name),
		"--data-dir", filepath.Join(m.dir, name, "data"), "--socket", m.socket(name), "--http", m.addr(name) + ":7980",
		"--join", m.addr("a"), "--join", m.addr("b")}
	if name <= "c" {
		args = append(args, "--voters", "a,b,c")
	}
	args = append(args, m.more...)
	if err := os.MkdirAll(filepath.Join(m.dir, name), 0o750); err != nil {
		t.Fatal(err)
	}
	said, err := os.OpenFile(filepath.Join(m.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	c := &exec.Cmd{Path: self, Args: args, Stderr: said, Env: append(os.Environ(), "GORACE=atexit_sleep_ms=10"),
		SysProcAttr: m.member()}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	m.agents[name] = c
}

// ended waits for an agent that was asked to leave.
func (m *mesh) ended(t *testing.T, name string) {
	t.Helper()
	if err := m.agents[name].Wait(); err != nil {
		t.Errorf("agent %s: %v", name, err)
	}
}

func (m *mesh) close() {
	for _, c := range m.agents {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	}
	_ = m.group.Process.Kill()
	_ = m.group.Wait()
}

// member makes a process end with this one, however this one ends.
func (m *mesh) member() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: m.group.Process.Pid}
}

// lead waits until the agent leads, and makes other leaders hand over to it.
func (m *mesh) lead(t *testing.T, name string) {
	t.Helper()
	m.until(t, name+" leads", func(ctx context.Context) bool {
		e, err := m.client(name).Election(ctx, "default", client.ElectionOptions{})
		if err == nil && e.Leader != nil && !e.IsLeader {
			_, _ = m.client(e.Leader.Name).Transfer(ctx, "default", name) // a refused request is repeated
		}
		return err == nil && e.IsLeader
	})
}

// stand keeps a candidacy at agent a until the test ends. It returns when that is elected.
func (m *mesh) stand(t *testing.T, election string) {
	t.Helper()
	c, err := m.client("a").Stand(t.Context(), election, api.CampaignRequest{Meta: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	m.campaign = c.ID()
	for {
		line, err := c.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if line.Type == api.CampaignElected {
			return
		}
	}
}

// addVoter starts one more agent and puts it on the roster.
func (m *mesh) addVoter(t *testing.T, name string) {
	t.Helper()
	m.start(t, name)
	m.until(t, name+" is a voter", func(ctx context.Context) bool {
		v, err := m.client("a").ChangeVoters(ctx, api.VotersRequest{Add: name})
		return err == nil && len(v.Voters) == 4
	})
}

func (m *mesh) until(t *testing.T, what string, so func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), snippetPatience)
	defer cancel()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for ; !so(ctx); <-again.C {
		if ctx.Err() != nil {
			var logs strings.Builder
			for name := range m.agents {
				text, _ := os.ReadFile(filepath.Join(m.dir, name+".log"))
				fmt.Fprintf(&logs, "%s:\n%s", name, text)
			}
			t.Fatalf("never: %s\n%s", what, &logs)
		}
	}
}

// run runs a snippet on the host of agent a, to its end or until it has written that many lines.
func (m *mesh) run(t *testing.T, s snippet, lines int) string {
	t.Helper()
	text := strings.ReplaceAll(s.text, "/run/doyen/", filepath.Join(m.dir, "a")+"/")
	text = regexp.MustCompile("[A-Z2-7]{26}").ReplaceAllString(text, m.campaign)
	text = strings.ReplaceAll(text, "10.0.0.2:7980", m.addr("b")+":7980")
	ctx, cancel := context.WithTimeout(t.Context(), snippetPatience)
	defer cancel()
	run := map[string][]string{"sh": {"sh", "-c"}, "python": {"python3", "-c"}, "js": {"node", "--input-type=module", "-e"}}[s.language]
	c := exec.CommandContext(ctx, run[0], append(run[1:], text)...)
	c.Dir = m.dir
	c.Env = append(os.Environ(), "S="+m.socket("a"), "DOYEN_SOCKET="+m.socket("a"), "PATH="+m.dir+":"+os.Getenv("PATH"),
		"PYTHONDONTWRITEBYTECODE=1", "GORACE=atexit_sleep_ms=10")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that a whole pipeline can be killed
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := read(out, lines)
	if lines > 0 {
		_ = c.Cancel()
		_ = c.Wait() // it was killed
		return said
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%s\n%v: %s", text, err, &stderr)
	}
	return said
}

// read reads that many lines; 0: all.
func read(r io.Reader, lines int) string {
	if lines == 0 {
		all, _ := io.ReadAll(r)
		return string(all)
	}
	var said strings.Builder
	for s := bufio.NewScanner(r); lines > 0 && s.Scan(); lines-- {
		said.WriteString(s.Text() + "\n")
	}
	return said.String()
}
