package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/hosts"
)

func config(n int, p program) hosts.Config {
	return hosts.Config{Agents: n, Algorithm: "bully", Profile: "local", Quorum: true, Program: p}
}

// temporary makes a directory in which no other testbed looks. Its path is short enough for
// sockets.
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

// ended is a context that is over, so that nothing is waited for.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
		"agents":    {Agents: hosts.MaxAgents + 1, Algorithm: "bully", Profile: "lan"},
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
