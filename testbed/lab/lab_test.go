package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// TestMain makes this executable serve as the programs, and builds the agents.
func TestMain(m *testing.M) {
	if code, served := actor.Serve(os.Args, os.Stdout, os.Stderr); served {
		os.Exit(code)
	}
	dir, err := hosts.NewDir()
	if err == nil {
		product.Path, err = hosts.Build(context.Background(), dir.Path, hosts.Product)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	dir.Close()
	os.Exit(code)
}

// product is the executable of the agents.
var product hosts.Binary

const patience = 30 * time.Second

// open starts agents and waits until they agree.
func open(t *testing.T, agents int) (*lab.Lab, *hosts.Host) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs real processes for some seconds: not with -short; CI runs it")
	}
	dir, err := os.MkdirTemp("/tmp", "dl") // t.TempDir can have too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	c := hosts.Config{Agents: agents, Algorithm: "bully", Profile: "lan", Quorum: true, Program: product}
	l, err := lab.New(t.Context(), c, lab.Options{Poll: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Kill(); err != nil {
			t.Error(err)
		}
	})
	for _, h := range l.Cluster.Hosts() {
		if _, err := l.Start(h); err != nil {
			t.Fatal(err)
		}
	}
	a, err := l.Agree(t.Context(), patience)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := l.Cluster.Host(a.Leader)
	return l, h
}

func TestAFaultAndWhatCameOfItAreRecorded(t *testing.T) {
	l, leader := open(t, 3)
	at, err := l.Begin(hosts.Crash(), leader)
	if err != nil {
		t.Fatal(err)
	}
	var next observe.Claim
	if err := l.Until(t.Context(), patience, "a successor", func() (ok bool) {
		l.Look(func(e *observe.Elections) { next, ok = e.Of(string(election.Default)).LedAfter(at) })
		return ok
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Start(leader); err != nil {
		t.Fatal(err)
	}
	if exits := l.Exits(); len(exits) != 1 || exits[0].Host != leader.Name() || !exits[0].Expected {
		t.Errorf("%+v", exits)
	}
	r := l.Record("test")
	if len(r.Faults) != 1 || r.Faults[0].What != "crash" || r.Faults[0].From != at || r.Faults[0].To <= at {
		t.Errorf("faults %+v", r.Faults)
	}
	if !slices.ContainsFunc(r.Takeovers, func(t observe.Takeover) bool { return t.After == next.Agent && t.Cause == "crash" }) {
		t.Errorf("takeovers %+v", r.Takeovers)
	}
	if len(r.Overlaps) != 0 || len(r.Hosts) != 3 {
		t.Errorf("overlaps %+v of %d hosts", r.Overlaps, len(r.Hosts))
	}
}

func TestAnAgentThatEndsByItselfIsNotExpectedTo(t *testing.T) {
	l, leader := open(t, 1)
	if _, err := leader.Kill(); err != nil { // without the lab's knowledge
		t.Fatal(err)
	}
	if err := l.Until(t.Context(), patience, "its end", func() bool { return len(l.Exits()) == 1 }); err != nil {
		t.Fatal(err)
	}
	if l.Exits()[0].Expected {
		t.Error("it was expected")
	}
	if _, err := l.Begin(hosts.Crash(), leader); !errors.Is(err, hosts.ErrDown) {
		t.Errorf("killed once more: %v", err)
	}
	err := l.Until(t.Context(), time.Millisecond, "nothing", func() bool { return false })
	if !errors.Is(err, lab.ErrLate) {
		t.Errorf("waited for what does not come: %v", err)
	}
}

func TestAProgramThatIsToRunAlwaysIsStartedAgain(t *testing.T) {
	l, leader := open(t, 1)
	p, err := l.Launch("p", "payments", leader, true, func(p *lab.Program) *exec.Cmd {
		executable, _ := os.Executable()
		return exec.Command(executable, actor.Campaign(leader.Config().Socket, "payments", "-", p.Stamps)...)
	})
	if err != nil {
		t.Fatal(err)
	}
	acts := func(term uint64) func() bool {
		return func() bool { a := p.Acting(); return a.Acts && a.Term > term }
	}
	if err := l.Until(t.Context(), patience, "a program that acts", acts(0)); err != nil {
		t.Fatal(err)
	}
	term := p.Acting().Term
	if _, err := p.Crash(); err != nil {
		t.Fatal(err)
	}
	if err := l.Until(t.Context(), patience, "the next process", acts(term)); err != nil {
		t.Fatal(err)
	}
	spans, err := l.Spans()
	if err != nil || len(spans) != 2 || spans[0].PID == spans[1].PID || spans[0].To >= spans[1].From {
		t.Errorf("%+v, %v", spans, err)
	}
	if f := l.Faults(); len(f) != 1 || f[0].Program != "p" {
		t.Errorf("%+v", f)
	}
}
