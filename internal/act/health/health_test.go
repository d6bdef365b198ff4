package health

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
)

func TestOnlyOutcomesInARowChangeTheVerdict(t *testing.T) {
	for _, c := range []struct {
		assumed, leads bool
		outcomes, want string // outcomes: + success, - failure; want: u up, d down, for each outcome that changed the verdict
	}{
		{false, false, "+", "u"},
		{false, false, "-", "d"}, // the first reason is reported
		{false, false, "-+++", "d.u."},
		{false, true, "+", "u"},
		{false, true, "--+---", "..u..d"}, // a leader does not hand over for one failure
		{false, true, "---+", "..d."},
		{true, false, "-", "."},
		{true, false, "--+---", ".....d"},
		{true, false, "---+-++", "..d...u"},
		{true, true, "+--", "..."},
	} {
		v, got := verdict{healthy: c.assumed, known: c.assumed}, ""
		for _, o := range c.outcomes {
			switch changed := v.add(Check{}.Resolved(), o == '+', c.leads); {
			case !changed:
				got += "."
			case v.healthy:
				got += "u"
			default:
				got += "d"
			}
		}
		if got != c.want {
			t.Errorf("assumed %t, %s: %s, want %s", c.assumed, c.outcomes, got, c.want)
		}
	}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guard.Word {
		os.Exit(guard.Main())
	}
	os.Exit(m.Run())
}

// checksOfTest returns checks that run every command and report to nobody.
func checksOfTest(t *testing.T) *Checks {
	pool := guard.NewPool(os.Environ(), guard.Nice(), "", slog.New(slog.DiscardHandler))
	return New(t.Context(), pool, func(string) error { return nil }, nowhere, nil, slog.New(slog.DiscardHandler))
}

func nowhere(election.Name) bool { return false }

func TestWhyACheckFails(t *testing.T) {
	h := checksOfTest(t)
	for command, want := range map[string]string{
		"true":                               "",
		"echo fine":                          "",
		"exit 3":                             "exit status 3",
		"echo one; echo two; echo; exit 1":   "two",
		"printf 'no\\tend\\033[0m'; exit 1":  "no end [0m",
		"echo to stderr >&2; exit 1":         "to stderr",
		"echo before; sleep 100":             "it did not end within 2s: before",
		"yes x | tr -d '\\n' | head -c 9000": "",
	} {
		k := check{Check: Check{Command: command, Timeout: time.Minute}} // long, for a busy machine
		if strings.Contains(command, "sleep") {
			k.Timeout = 2 * time.Second
		}
		if got := h.once(t.Context(), &k); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	long := check{Check: Check{Command: "yes é | tr -d '\\n' | head -c 9000; exit 1", Timeout: time.Minute}}
	if got := h.once(t.Context(), &long); len(got) == 0 || len(got) > maxLine || strings.ContainsRune(got, '?') {
		t.Errorf("%d bytes of a long line are shown: %q", len(got), got)
	}
}

func TestAHungCheckIsKilledWithItsChildren(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	k := check{Check: Check{Command: "sleep 1000 & echo $! >> " + pids + "; echo $$ >> " + pids + "; wait", Timeout: 2 * time.Second}}
	if got := checksOfTest(t).once(t.Context(), &k); got != "it did not end within 2s" {
		t.Errorf("it failed for %q", got)
	}
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for _, word := range strings.Fields(string(text)) {
		pid, _ := strconv.Atoi(word)
		for end := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil && !zombie(pid); <-again.C {
			if time.Now().After(end) {
				t.Fatalf("process %d is still there", pid)
			}
		}
	}
}

func zombie(pid int) bool {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return strings.Contains(string(stat), ") Z ")
}

// SIGKILL does not end a process that waits for a disk: the check fails all the same.
func TestACheckThatCannotBeKilledHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		disk, runs := make(chan string), 0
		k := check{Check: Check{}.Resolved(), run: func(context.Context) string { runs++; return <-disk }}
		for range 2 {
			began := time.Now()
			if got := k.outcome(ctx); got != "it did not end within 2s, nor when it was killed" || time.Since(began) != k.Timeout+dying {
				t.Errorf("%q after %v", got, time.Since(began))
			}
		}
		cancel()
		if began := time.Now(); k.outcome(ctx) == "" || time.Since(began) > dying {
			t.Errorf("the agent's end waited for %v", time.Since(began))
		}
		disk <- ""
		if got := k.outcome(ctx); got != "" || runs != 1 {
			t.Errorf("%q after the disk answered; %d runs", got, runs)
		}
	})
}

func TestVerdictsAreReportedAndReplaced(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "ok")
	reports := make(chan string, 100)
	h := New(ctx, checksOfTest(t).pool, func(string) error { return nil }, nowhere, func(name election.Name, current func() bool, unhealthy string) {
		if current() {
			reports <- string(name) + ":" + unhealthy
		}
	}, slog.New(slog.DiscardHandler))
	want := func(s string) {
		t.Helper()
		if got := <-reports; got != s {
			t.Errorf("reported %q, want %q", got, s)
		}
	}
	quick := Check{Command: "cat " + file, Every: Shortest, Timeout: time.Minute, Fall: 2, Rise: 2}
	none := func(election.Name) bool { return false }
	h.Set(map[election.Name]Check{"pay": quick}, none)
	want("pay:check failed: cat: " + file + ": No such file or directory")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want("pay:")
	if removed := h.Set(map[election.Name]Check{Host: {Command: "exit 1", Every: Shortest, Timeout: time.Minute, Fall: 1}}, func(election.Name) bool { return true }); len(removed) != 1 || removed[0] != "pay" {
		t.Errorf("removed %v", removed)
	}
	want(":check failed: exit status 1")
	cancel()
	h.Wait()
}
