package runner_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/runner"
)

// asNotifier, as the first argument, makes this test binary send the other arguments to NOTIFY_SOCKET.
const asNotifier = "notify"

func notify(lines []string) int {
	to, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err == nil {
		_, err = to.Write([]byte(strings.Join(lines, "\n")))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notify:", err)
		return 1
	}
	return 0
}

// checkOf returns a check that succeeds while a file exists, and set, which creates or removes the file.
func checkOf(t *testing.T) (c health.Check, set func(ok bool)) {
	file := filepath.Join(t.TempDir(), "well")
	return health.Check{Command: "echo looking; test -e " + file + " || { echo no database; exit 1; }", Every: health.Shortest, Timeout: time.Minute, Fall: 2, Rise: 1},
		func(ok bool) {
			if !ok {
				os.Remove(file)
			} else if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
}

func TestACheckDecidesWhoIsACandidate(t *testing.T) {
	t.Parallel()
	check, set := checkOf(t)
	r := start(t, config{Check: check}, `trap 'echo asked >&9; exit 0' TERM; echo up >&9; while :; do sleep 0.1; done`)
	r.line("not a candidate in payments: check failed: no database")
	set(true)
	stood := r.agent.Stood()
	set(false)
	wait(t, "withdrawal of a candidate", stood.Gone())
	r.line("not a candidate in payments: check failed: no database")
	set(true)
	stood = r.agent.Stood()
	stood.Elect(1, long)
	r.word("up")
	set(false)
	r.line("no longer leading payments (check failed: no database): stopping sh")
	r.word("asked")
	wait(t, "death", r.death)
	wait(t, "receipt", stood.Receipts())
	wait(t, "withdrawal of the leader", stood.Gone())
	set(true)
	r.agent.Stood()
	r.signal(r.cmd.Process.Pid, syscall.SIGTERM)
	r.status(0)
}

func TestAHungCheckIsKilledWithItsGroupAndHandsOver(t *testing.T) {
	t.Parallel()
	hang := filepath.Join(t.TempDir(), "hang")
	pids := hang + ".pids"
	check := health.Check{Command: "test ! -e " + hang + " || { sleep 1000 & echo $$ $! >> " + pids + "; echo waiting; wait; }",
		Every: health.Shortest, Timeout: 5 * time.Second, Fall: 1, Rise: 1} // long enough for a busy machine
	r := start(t, config{Check: check}, `echo up >&9; exec sleep 1000`)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.word("up")
	if err := os.WriteFile(hang, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.line("no longer leading payments (check failed: it did not end within 5s: waiting): stopping sh")
	wait(t, "death", r.death)
	wait(t, "receipt", stood.Receipts())
	os.Remove(hang)
	r.agent.Stood()
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(text)) {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("process %s of the check is still there", pid)
		}
	}
}

func TestWhatACheckLeavesBehindIsKilled(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	r := start(t, config{Check: health.Check{Command: "sleep 1000 & echo $! >> " + pids, Every: time.Hour, Timeout: time.Minute}}, "")
	r.agent.Stood()
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := os.Stat("/proc/" + strings.TrimSpace(string(text))); err == nil; runtime.Gosched() { // until the process is reaped
		_, err = os.Stat("/proc/" + strings.TrimSpace(string(text)))
	}
}

func TestTheEndOfRunDoesNotWaitForItsCheck(t *testing.T) {
	t.Parallel()
	once := filepath.Join(t.TempDir(), "once")
	check := health.Check{Command: "test ! -e " + once + " && touch " + once + " || sleep 1000", Every: health.Shortest, Timeout: time.Hour, Fall: 1}
	r := start(t, config{Check: check}, `echo up >&9; exec sleep 1000`)
	r.agent.Stood().Elect(1, long)
	r.word("up")
	r.signal(r.guard(), syscall.SIGKILL) // the check's run is killed too, which does not count as a failure
	wait(t, "death", r.death)
	r.word("up")
	r.signal(r.cmd.Process.Pid, syscall.SIGTERM)
	r.status(0)
	r.blames("check failed")
}

func TestACommandActsOnceItIsReady(t *testing.T) {
	t.Parallel()
	r := start(t, config{Ready: true, ReadyIn: time.Minute, Watchdog: 500 * time.Millisecond},
		`trap 'notify WATCHDOG=1 READY=1; echo ready >&9' USR1; trap 'echo asked >&9; exit 0' TERM; echo up $WATCHDOG_USEC >&9; while :; do sleep 0.1; done`)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.word("up 500000")
	r.signal(r.cmd.Process.Pid, syscall.SIGUSR1) // before READY=1 the watchdog is not armed
	r.line("sh is ready: leading payments, term 1")
	r.word("ready")
	r.line("no longer leading payments (sh sent no WATCHDOG=1 for 500ms): stopping sh")
	r.word("asked")
	wait(t, "receipt", stood.Receipts())
	wait(t, "withdrawal", stood.Gone())
}

func TestACommandThatIsNeverReadyHandsOver(t *testing.T) {
	t.Parallel()
	r := start(t, config{Ready: true, ReadyIn: 5 * time.Second, Restart: runner.RestartNever, Status: true},
		`trap 'exit 7' TERM; notify WATCHDOG=1 STATUS=starting; echo up >&9; while :; do sleep 0.1; done`)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.line("no longer leading payments (sh sent no READY=1 for 5s): stopping sh")
	r.status(7)
	wait(t, "receipt", stood.Receipts())
}

func TestACommandThatReportsProgressLeadsOn(t *testing.T) {
	t.Parallel()
	r := start(t, config{Watchdog: 4 * time.Second}, `for i in 1 2 3 4 5 6 7 8 9; do notify WATCHDOG=1; sleep 0.5; done; echo up >&9; trap 'echo asked >&9; exit' TERM; notify WATCHDOG=trigger; while :; do sleep 0.1; done`)
	r.agent.Stood().Elect(1, long)
	r.word("up")
	r.line("no longer leading payments (sh reported by WATCHDOG=trigger that it fails): stopping sh")
	r.word("asked")
}

// Any process may write to the socket, but only notices of the command count.
func TestNoticesOfOthersDoNotCount(t *testing.T) {
	t.Parallel()
	r := start(t, config{Ready: true, ReadyIn: time.Minute}, `trap 'notify READY=1' USR1; echo $NOTIFY_SOCKET >&9; while :; do sleep 0.1; done`)
	r.agent.Stood().Elect(1, long)
	name := wait(t, "name of the socket", r.said)
	to, err := net.Dial("unixgram", name)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := to.Write([]byte("WATCHDOG=trigger")); err != nil { // this process is not one of the command's
		t.Fatal(err)
	}
	r.signal(r.cmd.Process.Pid, syscall.SIGUSR1)
	r.line("sh is ready")
	r.blames("trigger")
}
