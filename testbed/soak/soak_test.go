package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

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

func TestEqualSeedsDrawEqualRounds(t *testing.T) {
	draw := func(seed uint64) (all []strike) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 50 {
			all = append(all, drawRound(rng, Kinds(), 5, time.Second)...)
		}
		return all
	}
	if !slices.Equal(draw(7), draw(7)) {
		t.Error("two drawings of one seed differ")
	}
	if slices.Equal(draw(7), draw(8)) {
		t.Error("two seeds draw the same")
	}
}

func TestEveryRoundIsBounded(t *testing.T) {
	met := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		n, lease := rapid.IntRange(3, 50).Draw(t, "hosts"), time.Duration(rapid.IntRange(1, 6000).Draw(t, "lease"))*time.Millisecond
		round := drawRound(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), Kinds(), n, lease)
		if len(round) < 1 || len(round) > 3 {
			t.Fatalf("%d faults", len(round))
		}
		for _, s := range round {
			met[s.Kind] = true
			if s.Host < leading || s.Host >= n || s.Other < 0 || s.Other >= n || s.At < 0 || s.At > lease || s.Lasts < 0 || s.Lasts > 5*lease {
				t.Fatalf("%+v", s)
			}
			if err := s.Link.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		line := moments(round)
		begun := map[int]bool{}
		for i, m := range line {
			if i > 0 && m.at < line[i-1].at || m.undo && !begun[m.strike] {
				t.Fatalf("out of order: %+v", line)
			}
			begun[m.strike] = true
		}
	})
	for _, k := range Kinds() {
		if !met[k] && !testing.Short() {
			t.Logf("never drawn: %s", k)
		}
	}
}

func TestATokenThatDoesNotRiseIsFound(t *testing.T) {
	claim := func(agent string, term uint64, start election.Instant) observe.Claim {
		return observe.Claim{Agent: agent, Term: term, Start: start}
	}
	for name, test := range map[string]struct {
		claims []observe.Claim
		found  bool
	}{
		"none":                       {nil, false},
		"rising":                     {[]observe.Claim{claim("a", 1, 10), claim("b", 2, 20), claim("a", 9, 30)}, false},
		"rising, heard in disorder":  {[]observe.Claim{claim("b", 2, 20), claim("a", 1, 10)}, false},
		"the same holder again":      {[]observe.Claim{claim("a", 1, 10), claim("a", 1, 20)}, false},
		"one token, two holders":     {[]observe.Claim{claim("a", 3, 10), claim("b", 3, 20)}, true},
		"a lower one":                {[]observe.Claim{claim("a", 3, 10), claim("b", 2, 20)}, true},
		"lower than one long before": {[]observe.Claim{claim("a", 5, 10), claim("b", 6, 20), claim("c", 5, 30)}, true},
	} {
		if got := fallen("x", test.claims); (got != "") != test.found {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestProgramsThatActAtOnceAreFound(t *testing.T) {
	act := func(program string, term uint64, from, to election.Instant) observe.ProgramSpan {
		return observe.ProgramSpan{Program: program, Term: term, From: from, To: to}
	}
	for name, test := range map[string]struct {
		acts []observe.ProgramSpan
		want string
	}{
		"none":             {nil, ""},
		"in turn":          {[]observe.ProgramSpan{act("a", 1, 10, 20), act("b", 2, 21, 30), act("a", 3, 31, 40)}, ""},
		"at once":          {[]observe.ProgramSpan{act("a", 1, 10, 25), act("b", 2, 21, 30)}, "acted at once for 4ns"},
		"under one token":  {[]observe.ProgramSpan{act("a", 2, 10, 15), act("b", 2, 21, 30)}, "both acted under term 2"},
		"one inside other": {[]observe.ProgramSpan{act("a", 1, 10, 90), act("b", 2, 20, 30)}, "acted at once for 10ns"},
		"a higher token":   {[]observe.ProgramSpan{act("a", 1, 10, 20), act("a", 2, 15, 30)}, ""},
	} {
		if got := together(test.acts); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestARoundOfFaultsOnRealProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs real processes for some seconds: not with -short; CI runs it")
	}
	dir, err := os.MkdirTemp("/tmp", "ds")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	t.Setenv("TMPDIR", dir)
	kept := filepath.Join(dir, "kept")
	result, err := Run(t.Context(), Options{
		Hosts: hosts.Config{Agents: 3, Algorithm: "bully", Profile: "lan", Quorum: true, Program: product},
		For:   time.Minute, Rounds: 2, Seed: 3, Keep: kept, Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.Violation != nil || result.Rounds != 2 || result.Register.Operations == 0 || len(result.Heals) != 3 || result.injected() == 0 {
		t.Errorf("%s", result.Summary())
	}
	r := result.Recording
	if r == nil || len(r.Hosts) != 3 || len(r.Hosts[0].Spans) == 0 || len(r.Programs) == 0 || len(r.Faults) < result.injected() {
		t.Errorf("recorded %+v", r)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind, of what went well: %v", left)
	}
}

func TestARoundOfFaultsOnRealJobs(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs real processes for some seconds: not with -short; CI runs it")
	}
	result, err := Run(t.Context(), Options{
		Hosts: hosts.Config{Agents: 3, Algorithm: "bully", Profile: "lan", Quorum: true, Program: product}, Doyen: product.Path,
		For: time.Minute, Rounds: 2, Seed: 3, Keep: filepath.Join(t.TempDir(), "kept"), Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if j := result.Jobs; result.Violation != nil || j == nil || j.Finished == 0 || j.Answers < j.Keys || !strings.Contains(result.Summary(), j.String()) {
		t.Errorf("%s", result.Summary())
	}
}

// After a violation, the kept logs suffice to find its cause without the cluster.
func TestTheLogsOfAViolationAreKept(t *testing.T) {
	l, err := lab.New(t.Context(), hosts.Config{Agents: 3, Algorithm: "bully", Profile: "lan", Quorum: true, Program: product}, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Kill()
	kept := filepath.Join(t.TempDir(), "kept")
	s := &soak{o: Options{Hosts: hosts.Config{Agents: 3}, Keep: kept}, lab: l, register: &Register{}}
	for _, h := range l.Cluster.Hosts() {
		if err := os.WriteFile(h.Log(), []byte("what "+h.Name()+" wrote\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.violate("overlap", "two led")
	s.violate("token", "and later this")
	s.conclude()
	if v := s.result.Violation; v.Rule != "overlap" || v.Logs != kept {
		t.Errorf("%+v", v)
	}
	if text, err := os.ReadFile(filepath.Join(kept, "beta.log")); err != nil || string(text) != "what beta wrote\n" {
		t.Errorf("%q, %v", text, err)
	}
	if r := s.result.Recording; !strings.Contains(r.Failed, "two led") || len(r.Hosts) != 3 {
		t.Errorf("%+v", r)
	}
}

func TestTheSummaryTellsWhatWasViolated(t *testing.T) {
	r := Result{Seed: 9, Rounds: 3, Faults: map[string]int{"crash": 2, "cut": 1}, Heals: []time.Duration{time.Second},
		Violation: &Violation{Rule: "overlap", What: "a and b", Round: 3, Faults: []string{"crash of host 1"}, Logs: "/kept"}}
	text := r.Summary()
	for _, want := range []string{"seed 9", "crash 2, cut 1", "VIOLATED: overlap", "in round 3 (crash of host 1): a and b", "logs: /kept"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestCheckNamesTheFlag(t *testing.T) {
	good := Options{Hosts: hosts.Config{Agents: 3, Algorithm: "bully", Profile: "lan", Quorum: true}, For: time.Second}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		"--for":     func(o *Options) { o.For = 0 },
		"--hosts":   func(o *Options) { o.Hosts.Agents = 2 },
		"--profile": func(o *Options) { o.Hosts.Profile = "x" },
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
