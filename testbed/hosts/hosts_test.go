package hosts_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// TestMain lets this very binary stand in for agents, and for a testbed that is
// killed.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "stand-in" {
		os.Exit(standIn(os.Args[2]))
	}
	os.Exit(m.Run())
}

// program runs this binary as a stand-in for an agent.
type program string

func (p program) Command(agent.Config, string) (*exec.Cmd, error) {
	self, err := os.Executable()
	return exec.Command(self, "stand-in", string(p)), err
}

func standIn(kind string) int {
	signals := make(chan os.Signal, 1)
	switch kind {
	case "polite":
		signal.Notify(signals, syscall.SIGTERM)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
	case "failing":
		fmt.Fprintf(os.Stderr, "starting\nthe disk is full\n")
		return 78
	case "testbed":
		return standInTestbed()
	}
	fmt.Fprintln(os.Stderr, "ready")
	<-signals
	return 0
}

// standInTestbed starts two agents, tells their process IDs and its directory,
// and waits to be killed.
func standInTestbed() int {
	c, err := hosts.New(config(2, "deaf"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, h := range c.Hosts() {
		if _, err := h.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(h.PID())
	}
	fmt.Println(filepath.Dir(c.Hosts()[0].Config().Socket))
	select {}
}

func config(n int, p program) hosts.Config {
	return hosts.Config{Agents: n, Algorithm: "bully", Profile: "local", Quorum: true, Program: p}
}

// temporary makes a directory that nobody else's testbed looks into. Its path is
// short, as sockets need it.
func temporary(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "dt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// started lays out a cluster, starts it, and waits until all are ready.
func started(t *testing.T, c hosts.Config) *hosts.Cluster {
	t.Helper()
	cluster, err := hosts.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Close(ended()) })
	for _, h := range cluster.Hosts() {
		if _, err := h.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range cluster.Hosts() {
		eventually(t, h.Name()+" is ready", func() bool {
			log, _ := os.ReadFile(h.Log())
			return strings.Contains(string(log), "ready")
		})
	}
	return cluster
}

// ended is a context that is over: nothing is waited for.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}

func TestCloseEndsPolitelyWhatLetsItself(t *testing.T) {
	dir := temporary(t)
	exits := make(chan hosts.Exit, 3)
	c := config(3, "polite")
	c.OnExit = func(e hosts.Exit) { exits <- e }
	cluster := started(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := cluster.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if e := <-exits; !e.Clean || e.Said != "ready" {
			t.Errorf("%s ended with %s and said %q, want a clean end", e.Host, e.How, e.Said)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files were left behind", len(left))
	}
	if _, err := cluster.Hosts()[0].Start(); err == nil {
		t.Error("an agent could be started after the end")
	}
}

func TestCloseKillsTheDeafAndTheFrozen(t *testing.T) {
	temporary(t)
	cluster := started(t, config(2, "deaf"))
	if _, err := cluster.Hosts()[1].Freeze(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := cluster.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, h := range cluster.Hosts() {
		if h.Status() != hosts.Down {
			t.Errorf("%s is %s", h.Name(), h.Status())
		}
	}
}

func TestAKilledTestbedLeavesNoProcessAndItsFilesToTheNext(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills the children of a killed process; agents that are no stand-ins notice")
	}
	dir := temporary(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testbed := exec.CommandContext(t.Context(), self, "stand-in", "testbed")
	testbed.Stderr = t.Output()
	out, err := testbed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := testbed.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var said []string
	for len(said) < 3 && lines.Scan() {
		said = append(said, lines.Text())
	}
	testbed.Process.Kill()
	testbed.Wait()
	if len(said) < 3 {
		t.Fatalf("the testbed said only %q", said)
	}
	for _, pid := range said[:2] {
		eventually(t, "process "+pid+" is gone", func() bool { return gone(pid) })
	}
	if _, err := os.Stat(said[2]); err != nil {
		t.Fatalf("the directory of the killed testbed: %v", err)
	}
	d, err := hosts.NewDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(said[2]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next testbed left %s behind", said[2])
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files were left behind", len(left))
	}
}

// gone reports a process that ended, whether it was collected or not.
func gone(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return err != nil || bytes.HasPrefix(state, []byte("Z")) || bytes.HasPrefix(state, []byte("X"))
}

func TestTheNextTestbedLeavesAloneWhatIsNotAbandoned(t *testing.T) {
	dir := temporary(t)
	held, err := hosts.NewDir()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	unlocked := filepath.Join(dir, "doyen-testbed-of-somebody")
	if err := os.Mkdir(unlocked, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "doyen-testbed-link")
	if err := os.Symlink(held.Path, link); err != nil {
		t.Fatal(err)
	}
	second, err := hosts.NewDir()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for _, path := range []string{held.Path, unlocked, link} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("it was removed: %v", err)
		}
	}
}

func TestAnEndByItselfSaysWhy(t *testing.T) {
	temporary(t)
	exits := make(chan hosts.Exit, 1)
	c := config(1, "failing")
	c.OnExit = func(e hosts.Exit) { exits <- e }
	cluster, err := hosts.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close(ended())
	if _, err := cluster.Hosts()[0].Start(); err != nil {
		t.Fatal(err)
	}
	e := <-exits
	if e.Clean || e.How != "exit status 78" || e.Said != "the disk is full" {
		t.Errorf("%+v", e)
	}
}

func TestFaultsAndTheStatusesTheyLeadTo(t *testing.T) {
	temporary(t)
	h := started(t, config(1, "polite")).Hosts()[0]
	if _, err := h.Start(); !errors.Is(err, hosts.ErrUp) {
		t.Errorf("a second start: %v, want ErrUp", err)
	}
	first := h.PID()
	frozen, err := h.Freeze()
	if err != nil || h.Status() != hosts.Frozen {
		t.Fatalf("after SIGSTOP it is %s: %v", h.Status(), err)
	}
	thawed, err := h.Thaw()
	if err != nil || h.Status() != hosts.Running || thawed < frozen {
		t.Fatalf("after SIGCONT it is %s: %v", h.Status(), err)
	}
	if _, err := h.Kill(); err != nil {
		t.Fatal(err)
	}
	<-h.Done()
	if h.Status() != hosts.Down || h.PID() != 0 {
		t.Errorf("after SIGKILL it is %s, process %d", h.Status(), h.PID())
	}
	if _, err := h.Terminate(); !errors.Is(err, hosts.ErrDown) {
		t.Errorf("SIGTERM of nothing: %v, want ErrDown", err)
	}
	if _, err := h.Start(); err != nil || h.PID() == first {
		t.Errorf("started again: process %d after %d: %v", h.PID(), first, err)
	}
}

func TestEachAgentHasAPlaceOfItsOwn(t *testing.T) {
	temporary(t)
	cluster, err := hosts.New(config(hosts.MaxAgents, "polite"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close(ended())
	seen := map[string]string{}
	for _, h := range cluster.Hosts() {
		c := h.Config()
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", h.Name(), err)
		}
		if len(c.Socket) > 103 {
			t.Errorf("%s: its socket's path has %d bytes", h.Name(), len(c.Socket))
		}
		for _, place := range []string{c.Name, c.DataDir, c.Socket, c.Bind + "/" + strconv.Itoa(c.GossipPort), c.Bind + "/" + strconv.Itoa(c.PeerPort)} {
			if seen[place] != "" {
				t.Errorf("%s and %s share %s", seen[place], h.Name(), place)
			}
			seen[place] = h.Name()
		}
	}
}

func TestCheckNamesTheFlag(t *testing.T) {
	for name, c := range map[string]hosts.Config{
		"agents":    {Agents: 25, Algorithm: "bully", Profile: "lan"},
		"algorithm": {Agents: 3, Algorithm: "paxos", Profile: "lan"},
		"profile":   {Agents: 3, Algorithm: "ring", Profile: "moon"},
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), "--"+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := config(3, "polite").Check(); err != nil {
		t.Error(err)
	}
}

func TestTheProductIsGivenAConfigurationFileAndNoEnvironmentOfOurs(t *testing.T) {
	dir := temporary(t)
	marker := filepath.Join(dir, "marker")
	script := filepath.Join(dir, "doyen")
	text := "#!/bin/sh\ncp \"$3\" " + marker + ".config; env > " + marker + "; echo $1 $2 >&2\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOYEN_NAME", "wrong")
	exits := make(chan hosts.Exit, 1)
	c := config(1, "")
	c.Program, c.OnExit = hosts.Binary{Path: script}, func(e hosts.Exit) { exits <- e }
	cluster, err := hosts.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close(ended())
	if _, err := cluster.Hosts()[0].Start(); err != nil {
		t.Fatal(err)
	}
	if e := <-exits; !e.Clean || e.Said != "agent --config" {
		t.Fatalf("%s, arguments %q", e.How, e.Said)
	}
	if env, err := os.ReadFile(marker); err != nil || bytes.Contains(env, []byte("DOYEN_")) {
		t.Errorf("its environment (%v):\n%s", err, env)
	}
	given, err := os.ReadFile(marker + ".config")
	if err != nil || !bytes.Contains(given, []byte("name: \"alpha\"")) {
		t.Errorf("its configuration (%v):\n%s", err, given)
	}
}
