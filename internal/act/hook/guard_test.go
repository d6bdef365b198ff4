package hook_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/act/hook"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/executable"
)

// child, if set in the environment, makes this test binary play an agent. It runs the command in child as a
// leader's hook, until it is killed. The lease is extended whenever the hook asks, by childLease if that is
// set. The run's limit is childLimit.
const (
	child      = "DOYEN_TEST_HOOK"
	childLease = "DOYEN_TEST_LEASE"
	childLimit = "DOYEN_TEST_LIMIT"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guard.Word {
		os.Exit(guard.Main())
	}
	if command := os.Getenv(child); command != "" {
		playAnAgent(command)
		return
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests wait for leases, not for processors
		panic(err)
	}
	os.Exit(m.Run())
}

func playAnAgent(command string) {
	limit, err := time.ParseDuration(os.Getenv(childLimit))
	if err != nil {
		panic(err)
	}
	event := hook.Event{Election: "default", Event: election.Leading, Term: 1, Done: func() { fmt.Println("ended") }}
	if lease, err := time.ParseDuration(os.Getenv(childLease)); err == nil {
		event.Until = func() election.Instant {
			fmt.Println("renewed")
			return boottime.Now().Add(lease)
		}
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, nil))
	r := hook.New(hook.Commands{Default: command, Limit: limit}, guard.NewPool(os.Environ(), guard.Nice(), os.Getenv(child), logger), logger)
	r.Enqueue(event)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes the pipe or ends
}

// acting is an agent that playAnAgent plays, and whose hook runs. The hook and its children hold a pipe open as
// long as one of them lives.
type acting struct {
	t       *testing.T
	agent   *exec.Cmd
	renewed *bufio.Scanner
	pipe    *os.File
}

func startActing(t *testing.T, env ...string) acting {
	t.Helper()
	dir := t.TempDir()
	alive, never := filepath.Join(dir, "alive"), filepath.Join(dir, "never")
	mkfifo(t, alive)
	mkfifo(t, never)
	a := acting{t: t, agent: exec.Command(os.Args[0])}
	a.agent.Env = append(os.Environ(), child+"="+executable.Script(t, "exec 3> "+alive+"; echo x >&3; (cat "+never+") & cat "+never))
	a.agent.Env = append(a.agent.Env, env...)
	if _, err := a.agent.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := a.agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.renewed = bufio.NewScanner(out)
	if err := a.agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.agent.Process.Kill()
		_ = a.agent.Wait()
	})
	if a.pipe, err = os.Open(alive); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.pipe.Close() })
	if _, err := a.pipe.Read(make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a acting) signal(s syscall.Signal) {
	a.t.Helper()
	if err := a.agent.Process.Signal(s); err != nil {
		a.t.Fatal(err)
	}
}

// ended waits until no process of the run is left.
func (a acting) ended() {
	a.t.Helper()
	end := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, a.pipe)
		end <- err
	}()
	select {
	case err := <-end:
		if err != nil {
			a.t.Error(err)
		}
	case <-time.After(patience):
		a.t.Error("it acts on")
	}
}

func TestAKilledAgentLeavesNoRunBehind(t *testing.T) {
	a := startActing(t, childLimit+"=1h")
	a.signal(syscall.SIGKILL)
	a.ended()
}

// A frozen agent can't end the run. While it ran, it extended the run's deadline.
func TestAFrozenAgentsRunEndsWithItsLease(t *testing.T) {
	t.Parallel()
	a := startActing(t, childLimit+"=1h", childLease+"=1s")
	for range 20 { // four times in each lease, so for several leases
		if !a.renewed.Scan() || a.renewed.Text() == "ended" {
			t.Fatal("the run has ended, though its lease was renewed")
		}
	}
	a.goesOn()
	a.signal(syscall.SIGSTOP)
	a.ended()
}

// goesOn demands that the run has not ended yet.
func (a acting) goesOn() {
	a.t.Helper()
	fds := []unix.PollFd{{Fd: int32(a.pipe.Fd()), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, 0); err != nil || fds[0].Revents&unix.POLLHUP != 0 {
		a.t.Errorf("the run has ended, though its lease was renewed: %v", err)
	}
}

func TestAFrozenAgentsRunIsLimited(t *testing.T) {
	t.Parallel()
	a := startActing(t, childLimit+"=2s")
	a.signal(syscall.SIGSTOP)
	a.ended()
}

// The kernel may kill the guard when memory is short. It then kills only the command's first process; the agent
// kills the others.
func TestARunEndsWithItsGuard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux's /proc, to find the guard's process; CI runs it")
	}
	a := startActing(t, childLimit+"=1h", childLease+"=2s")
	if err := syscall.Kill(a.guard(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.ended()
}

// A frozen guard kills nothing: the agent has to.
func TestAFrozenGuardDoesNotDelayTheEndOfARun(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux's /proc, to find the guard's process; CI runs it")
	}
	a := startActing(t, childLimit+"=1s")
	if err := syscall.Kill(a.guard(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	a.ended()
}

// If agent and guard are killed at once, nothing ends the run. The next agent does.
func TestWhatIsLeftOfAKilledAgentAndGuardIsEndedByTheNext(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux's /proc, to find what is left; CI runs it")
	}
	a := startActing(t, childLimit+"=1h")
	pid, owner := a.guard(), ""
	for _, entry := range a.agent.Env {
		if text, found := strings.CutPrefix(entry, child+"="); found {
			owner = text
		}
	}
	a.signal(syscall.SIGSTOP)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if n := guard.EndLeftovers(t.Context(), owner, slog.New(slog.DiscardHandler)); n != 0 {
		t.Errorf("%d processes were ended while their agent was alive", n)
	}
	a.goesOn()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.signal(syscall.SIGKILL)
	_ = a.agent.Wait()
	if n := guard.EndLeftovers(t.Context(), "another "+owner, slog.New(slog.DiscardHandler)); n != 0 {
		t.Errorf("%d processes of another agent were ended", n)
	}
	a.goesOn()
	if n := guard.EndLeftovers(t.Context(), owner, slog.New(slog.DiscardHandler)); n == 0 {
		t.Error("nothing was found")
	}
	a.ended()
}

// guard finds the guard of the run.
func (a acting) guard() int {
	a.t.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", a.agent.Process.Pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			grand, _ := filepath.Glob("/proc/" + child + "/task/*/children")
			for _, list := range grand {
				if text, _ := os.ReadFile(list); len(text) > 0 && strings.Contains(string(line), guard.Word) {
					pid, _ := strconv.Atoi(child)
					return pid
				}
			}
		}
	}
	a.t.Fatal("the agent has no guard")
	return 0
}

// If the leadership goes on, the hook has to run again.
func TestALeadershipThatGoesOnIsToldAgainAfterItsRunWasKilledByTheGuard(t *testing.T) {
	t.Parallel()
	alive, never := filepath.Join(t.TempDir(), "alive"), filepath.Join(t.TempDir(), "never")
	mkfifo(t, alive)
	mkfifo(t, never)
	r, l := start(t, "exec 4> "+alive+"; echo $DOYEN_EVENT $DOYEN_TERM >&4; cat "+never, time.Hour)
	var renewed atomic.Bool
	first := boottime.Now().Add(3 * time.Second) // time enough for the run to start
	r.Enqueue(hook.Event{Election: "default", Event: election.Leading, Term: 7,
		Stands: func() bool { return true },
		Until: func() election.Instant {
			if renewed.Load() {
				return boottime.Now().Add(time.Hour)
			}
			return first
		}})
	if text, err := os.ReadFile(alive); string(text) != "leading 7\n" { // reads until the run is dead
		t.Fatalf("the first run says %q, %v", text, err)
	}
	pipe, err := os.OpenFile(alive, os.O_RDWR, 0) // with O_RDWR the open does not wait for a writer
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	_ = pipe.SetReadDeadline(time.Now().Add(patience))
	renewed.Store(true)
	if text, err := bufio.NewReader(pipe).ReadString('\n'); text != "leading 7\n" {
		t.Errorf("the second run says %q, %v", text, err)
	}
	if !strings.Contains(l.String(), "hook killed by its guard") {
		t.Errorf("the log says %s", l)
	}
}
