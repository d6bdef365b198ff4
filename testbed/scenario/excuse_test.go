package scenario

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hiccup"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

func TestAScriptIsPlayedUntilAPlayDecides(t *testing.T) {
	still := Result{Excuse: "the machine was paused"}
	for name, test := range map[string]struct {
		plays     []Result
		passed    bool
		undecided int
	}{
		"it passes":                        {[]Result{{Passed: true}}, true, 0},
		"it fails and nothing excuses it":  {[]Result{{}, {Passed: true}}, false, 0},
		"a play decides nothing, one does": {[]Result{still, {Passed: true}}, true, 1},
		"the next one fails by itself":     {[]Result{still, {}, {Passed: true}}, false, 1},
		"none decides":                     {slices.Repeat([]Result{still}, maxPlays), false, maxPlays - 1},
	} {
		t.Run(name, func(t *testing.T) {
			next, undecided := 0, 0
			r, err := untilDecided(func(Result) { undecided++ }, func() (Result, error) {
				next++
				return test.plays[next-1], nil
			})
			if err != nil || r.Passed != test.passed || undecided != test.undecided {
				t.Errorf("passed %t after %d undecided plays (%v), want %t after %d", r.Passed, undecided, err, test.passed, test.undecided)
			}
		})
	}
}

func TestOnlyAHiccupOfAHeartbeatExcuses(t *testing.T) {
	const heartbeat = 200 * time.Millisecond
	at := func(d time.Duration) election.Instant { return election.Instant(time.Hour + d) }
	short := hiccup.Hiccup{What: "processor 0", From: at(0), To: at(heartbeat - 1)}
	later := hiccup.Hiccup{What: "processor 0", From: at(time.Second), To: at(time.Second + heartbeat - 1)}
	if told := excuse([]hiccup.Hiccup{short, later}, heartbeat); told != "" {
		t.Errorf("two short ones excuse: %s", told)
	}
	later.To++
	if told := excuse([]hiccup.Hiccup{short, later}, heartbeat); !strings.Contains(told, "200ms at most (processor 0)") {
		t.Errorf("a long one does not excuse: %q", told)
	}
}

// laidOut is a world with hosts that were never started.
func laidOut(t *testing.T, quorum bool) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	config := hosts.Config{Agents: 3, Algorithm: "bully", Profile: "lan", Quorum: quorum, Program: hosts.Binary{Path: "none"}}
	l, err := lab.New(ctx, config, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{ctx: ctx, config: config, lab: l, began: election.Instant(time.Hour)}
	t.Cleanup(func() {
		cancel()
		if err := l.Kill(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// leads makes the agent report that it leads, at an instant in seconds.
func (w *world) leads(agent string, term uint64, at int64) {
	w.lab.Apply(observe.Changed{Agent: agent, Change: api.Change{Type: api.ChangeLeader, Election: "default", Term: term,
		Leader: &api.Leader{Name: agent}, IsLeader: true, BoottimeNS: at * int64(time.Second)}})
}

func (w *world) stops(agent string, term uint64, at int64) {
	w.lab.Apply(observe.Changed{Agent: agent, Change: api.Change{Type: api.ChangeNoLeader, Election: "default", Term: term, BoottimeNS: at * int64(time.Second)}})
}

func TestWhatMustHoldOnAnyMachineIsNeverExcused(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(*world)
		quorum  bool
		broken  bool
	}{
		"one leads after the other": {func(w *world) { w.leads("alpha", 1, 1); w.stops("alpha", 1, 2); w.leads("beta", 2, 3) }, true, false},
		"two lead at once":          {func(w *world) { w.leads("alpha", 1, 1); w.leads("beta", 2, 2) }, true, true},
		"two without a quorum":      {func(w *world) { w.leads("alpha", 1, 1); w.leads("beta", 2, 2) }, false, false},
		"a term that does not rise": {func(w *world) { w.leads("alpha", 2, 1); w.stops("alpha", 2, 2); w.leads("beta", 2, 3) }, true, true},
		"an agent that was killed":  {func(w *world) { w.lab.Exited(hosts.Exit{How: "signal: killed"}) }, true, false},
		"an agent that panicked":    {func(w *world) { w.lab.Exited(hosts.Exit{How: "exit status 2"}) }, true, true},
		"one, without a quorum":     {func(w *world) { w.lab.Exited(hosts.Exit{How: "exit status 2"}) }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := laidOut(t, test.quorum)
			test.happens(w)
			if broken := w.broken(); broken != test.broken {
				t.Errorf("broken %t, want %t", broken, test.broken)
			}
		})
	}
}

func TestHiccupsCountFromALeaseBeforeTheMark(t *testing.T) {
	w := laidOut(t, true)
	second := election.Instant(time.Second)
	for name, test := range map[string]struct{ began, marked, acted, want election.Instant }{
		"no mark":           {began: 100 * second, acted: 150 * second, want: 100 * second},
		"a mark":            {began: 100 * second, marked: 120 * second, acted: 150 * second, want: 120 * second},
		"something earlier": {began: 100 * second, marked: 150 * second, acted: 120 * second, want: 120 * second},
	} {
		w.began, w.marked, w.acted = test.began, test.marked, test.acted
		if got := w.doubtful(); got != test.want.Add(-w.agents().Lease) {
			t.Errorf("%s: from %v, want a lease before %v", name, got, test.want)
		}
	}
}

func TestAScriptThatCantBePlayedIsNotPlayedAgain(t *testing.T) {
	plays := 0
	_, err := untilDecided(nil, func() (Result, error) {
		plays++
		return Result{Excuse: "the machine was paused"}, errors.New("interrupted")
	})
	if err == nil || plays != 1 {
		t.Errorf("%d plays, %v", plays, err)
	}
}
