package act_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/client/clienttest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/hook"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/testbed/executable"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guard.Word {
		os.Exit(guard.Main())
	}
	if len(os.Args) == 3 && os.Args[1] == asRoot {
		stayAsRoot(os.Args[2])
		return
	}
	if len(os.Args) == 3 && (os.Args[1] == asHook || os.Args[1] == asCheck) {
		runOne(os.Args[1], os.Args[2])
		return
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests wait for leases, not for processors
		panic(err)
	}
	os.Exit(m.Run())
}

const long = time.Hour // a lease that outlasts the test

// rig is a doyen act beside the test's own agent.
type rig struct {
	t       *testing.T
	agent   *clienttest.Agent
	said    chan string // what its commands write to the pipe
	ends    *os.File    // PIPE.end: a command that waits for a line from it ends when the test writes that
	hangups chan os.Signal
	next    atomic.Pointer[act.Work] // the work that a reload reads
	stop    context.CancelFunc
	ended   chan error
}

// start starts a doyen act with the work. In its commands, PIPE is a pipe that the test reads.
func start(t *testing.T, w act.Work) *rig {
	t.Helper()
	r := &rig{t: t, agent: clienttest.Start(t), said: make(chan string, 100), hangups: make(chan os.Signal, 1), ended: make(chan error, 1)}
	path := filepath.Join(t.TempDir(), "pipe")
	pipe := fifo(t, path)
	r.ends = fifo(t, path+".end")
	go func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			r.said <- lines.Text()
		}
	}()
	command := func(line string) string {
		if line == "" {
			return ""
		}
		return executable.Script(t, strings.ReplaceAll(line, "PIPE", path))
	}
	w.Hooks.Default = command(w.Hooks.Default)
	w.Hooks.Limit = clienttest.Patience
	for name, c := range w.Checks {
		c.Command = command(c.Command)
		w.Checks[name] = c
	}
	r.next.Store(&w)
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	of := client.New(r.agent.Socket())
	go func() {
		r.ended <- act.Run(ctx, act.Config{Client: of, Work: w, Hangups: r.hangups, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
			Reread: func() (act.Work, error) { return *r.next.Load(), nil }})
	}()
	t.Cleanup(func() {
		cancel()
		if err, ok := <-r.ended; ok && err != nil {
			t.Error(err)
		}
		of.Close()
	})
	return r
}

func fifo(t *testing.T, path string) *os.File {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// take waits for the channel's next value.
func take[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(clienttest.Patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

func (r *rig) word(want string) {
	r.t.Helper()
	if got := take(r.t, want, r.said); got != want {
		r.t.Fatalf("it says %q, want %q", got, want)
	}
}

// elect makes the host lead for the length of the lease.
func elect(c *clienttest.Campaign, kind string, term uint64, lease time.Duration) {
	c.Say(api.CampaignEvent{Type: kind, Election: "default", Term: term, ValidUntilBoottimeNS: alarm.Now() + int64(lease)})
}

func revoke(c *clienttest.Campaign, term uint64) {
	c.Say(api.CampaignEvent{Type: api.CampaignRevoked, Election: "default", Term: term, Reason: "transferred", StopByBoottimeNS: alarm.Now() + int64(long)})
}

// acting has a hook that writes each event to the pipe. A run for leading then goes on until it is killed.
func acting() act.Work {
	return act.Work{Hooks: hook.Commands{Default: `echo $DOYEN_EVENT $DOYEN_TERM >PIPE; [ $DOYEN_EVENT != leading ] || exec sleep 1000`}}
}

func TestTheReceiptFollowsTheRunThatUndoes(t *testing.T) {
	t.Parallel()
	w := acting()
	w.Hooks.Default += "; read end <PIPE.end"
	r := start(t, w)
	c := r.agent.Stood()
	if got := c.Request; got.Role != api.RoleCompanion || fmt.Sprint(got.Companion.Elections) != "[default]" {
		t.Errorf("it came as %+v", got)
	}
	elect(c, api.CampaignElected, 7, long)
	r.word("leading 7")
	elect(c, api.CampaignRenewed, 7, long)
	revoke(c, 7)
	r.word("none 7")
	select {
	case got := <-c.Receipts():
		t.Fatalf("the receipt is given before the run has ended: %+v", got)
	case <-time.After(300 * time.Millisecond): // much longer than a receipt takes
	}
	fmt.Fprintln(r.ends)
	if got := take(t, "receipt", c.Receipts()); got != (api.StoppedRequest{Election: "default", Term: 7}) {
		t.Errorf("the receipt is %+v", got)
	}
}

// The process before it may have acted already, so the first line counts even if it does not report an election.
func TestOneThatStartsWhereItsHostLeadsActs(t *testing.T) {
	r := start(t, acting())
	elect(r.agent.Stood(), api.CampaignRenewed, 3, long)
	r.word("leading 3")
	r.stop()
	r.word("none 3")
}

func TestAHigherTermGoesOnWithTheRunOfTheOneBefore(t *testing.T) {
	r := start(t, act.Work{Hooks: hook.Commands{Default: `echo $DOYEN_EVENT $DOYEN_TERM >PIPE`}})
	c := r.agent.Stood()
	elect(c, api.CampaignElected, 3, long)
	r.word("leading 3")
	elect(c, api.CampaignRenewed, 4, long)
	r.word("leading 4") // the term rises: the hook learns the new one
	revoke(c, 4)
	r.word("none 4")
}

func TestWhatNobodyProlongsIsEnded(t *testing.T) {
	t.Parallel()
	r := start(t, acting())
	c := r.agent.Stood()
	elect(c, api.CampaignElected, 2, 4*time.Second)
	r.word("leading 2")
	r.word("none 2")
	if got := take(t, "receipt", c.Receipts()); got.Term != 2 || got.Reason == "" {
		t.Errorf("the receipt is %+v", got)
	}
	r.agent.Stop()
	r.agent.Listen()
	if held := r.agent.Stood().Request.Companion.Holds; len(held) > 0 {
		t.Errorf("it holds %v, which has ended", held)
	}
}

// While the agent is away, the run goes on under its deadline.
func TestItResumesWithWhatItHolds(t *testing.T) {
	r := start(t, acting())
	elect(r.agent.Stood(), api.CampaignElected, 5, long)
	r.word("leading 5")
	r.agent.Stop()
	r.agent.Listen()
	again := r.agent.Stood()
	if held := again.Request.Companion.Holds["default"]; held != 5 {
		t.Errorf("it holds %+v", again.Request.Companion.Holds)
	}
	elect(again, api.CampaignRenewed, 5, long)
	revoke(again, 5)
	r.word("none 5") // without a second "leading"
}

func TestAHookThatFailsIsRepeatedAndThenHandsOver(t *testing.T) {
	t.Parallel()
	r := start(t, act.Work{Failures: 2, Hooks: hook.Commands{Default: `echo $DOYEN_EVENT >PIPE; [ $DOYEN_EVENT = none ]`}})
	c := r.agent.Stood()
	elect(c, api.CampaignElected, 2, long)
	for _, want := range []string{"leading", "leading", "none"} {
		r.word(want)
	}
	if got := take(t, "receipt", c.Receipts()); got.Reason != "hook failed: run hook: exit status 1" {
		t.Errorf("the receipt is %+v", got)
	}
	if got := take(t, "report", c.Reports()); got.Failed["default"] != "run hook: exit status 1" {
		t.Errorf("it reports %+v", got)
	}
}

func TestAHookThatAReloadRemovesRunsOnceMore(t *testing.T) {
	r := start(t, acting())
	c := r.agent.Stood()
	elect(c, api.CampaignElected, 2, long)
	r.word("leading 2")
	r.next.Store(&act.Work{})
	r.hangups <- syscall.SIGHUP
	if got := take(t, "report", c.Reports()); len(got.Elections) != 0 {
		t.Errorf("it still acts in %v", got.Elections)
	}
	revoke(c, 2)
	r.word("none 2")
	take(t, "receipt", c.Receipts())
}

// If the agent, paused for long, missed a report, this host could lose its vote, or keep a lead that it may not
// have.
func TestAReportThatTheAgentDidNotTakeIsSentAgain(t *testing.T) {
	t.Parallel()
	r := start(t, acting())
	c := r.agent.Stood()
	r.agent.Refuse(http.StatusServiceUnavailable, api.CodeBusy, "later")
	r.next.Store(&act.Work{})
	r.hangups <- syscall.SIGHUP
	for range 3 {
		if got := take(t, "report", c.Reports()); len(got.Elections) != 0 {
			t.Errorf("it still acts in %v", got.Elections)
		}
	}
}

// checked has a check that reports each run to the pipe, and fails while the file is missing.
func checked(file string) act.Work {
	return act.Work{Checks: map[election.Name]health.Check{health.Host: {Command: "echo looked >PIPE; test -e " + file + " || { echo looking for it; echo no database; exit 1; }",
		Every: health.Shortest, Timeout: clienttest.Patience, Fall: 3, Rise: 1}}}
}

// verdict waits for a report with a verdict, and returns why the host is not able.
func verdict(t *testing.T, c *clienttest.Campaign) string {
	t.Helper()
	for {
		if v := take(t, "verdict", c.Reports()).Checks[api.EveryElection]; v.Able || v.Reason != "" {
			return v.Reason
		}
	}
}

// The check has just begun, so a single failure must not end a leadership.
func TestALeaderHandsOverOnlyAfterAsManyFailuresAsTheCheckMayHave(t *testing.T) {
	t.Parallel()
	w := checked("/nowhere")
	check := w.Checks[health.Host]
	check.Every = time.Second
	w.Checks[health.Host] = check
	r := start(t, w)
	c := r.agent.Stood()
	elect(c, api.CampaignRenewed, 2, long)
	r.word("looked")
	first := time.Now()
	if why := verdict(t, c); why != "check failed: no database" {
		t.Errorf("it is not able for %q", why)
	}
	if after := time.Since(first); after < check.Every {
		t.Errorf("it is not able %v after the first failure of three", after)
	}
}

func TestACheckDecidesWhetherTheHostIsAble(t *testing.T) {
	file := filepath.Join(t.TempDir(), "database")
	r := start(t, checked(file))
	c := r.agent.Stood()
	if first := c.Request.Companion.Checks[api.EveryElection]; first.Able || first.Reason != "" {
		t.Errorf("before the first outcome it reports %+v", first)
	}
	if why := verdict(t, c); why != "check failed: no database" {
		t.Errorf("it is not able for %q", why)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if why := verdict(t, c); why != "" {
		t.Errorf("it is not able for %q", why)
	}
}

func TestOneThatIsRefusedEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		code   string
	}{{http.StatusForbidden, api.CodeForbidden}, {http.StatusConflict, api.CodeInUse}} {
		agent := clienttest.Start(t)
		agent.Refuse(test.status, test.code, "another one acts")
		c := client.New(agent.Socket())
		err := act.Run(t.Context(), act.Config{Client: c, Work: acting(), Logger: slog.New(slog.DiscardHandler)})
		if refused, ok := errors.AsType[*client.APIError](err); !ok || refused.Code != test.code {
			t.Errorf("%s: it ended with %v", test.code, err)
		}
		c.Close()
	}
}
