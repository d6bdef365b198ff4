package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

// after returns a channel that is closed when the clock has reached the instant.
func after(t *testing.T, instant int64) <-chan struct{} {
	t.Helper()
	a, err := alarm.New()
	if err != nil {
		t.Fatal(err)
	}
	a.Set(instant)
	reached := make(chan struct{})
	go func() {
		defer a.Close()
		<-a.C
		close(reached)
	}()
	return reached
}

// blames demands that the runner has said none of these words.
func (r *rig) blames(none ...string) {
	r.t.Helper()
	for _, words := range none {
		if said := r.heard.String(); strings.Contains(said, words) {
			r.t.Errorf("it says %q, of which nothing is true", words)
		}
	}
}

// The guard ended the command in time.
func TestAFrozenRunnerBlamesNeitherGuardNorCommand(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `echo up >&9; exec sleep 1000`)
	until := r.agent.Stood().Elect(1, short)
	r.word("up")
	r.freeze(r.cmd.Process.Pid)
	r.before(until)
	r.signal(r.cmd.Process.Pid, syscall.SIGCONT)
	r.agent.Stood().Elect(2, long)
	r.word("up")
	r.blames("the guard is late", "starting it again in", "in a row")
}

func TestAFrozenGuardIsNotTheCommandsFault(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, stubborn)
	until := r.agent.Stood().Elect(1, short)
	r.word("up")
	r.freeze(r.guard())
	r.before(until)
	r.line("the guard is late")
	r.agent.Stood().Elect(2, long)
	r.word("up")
	r.blames("doyen run got no processor time", "starting it again in", "in a row")
}

// While the whole host is paused, nothing runs in time.
func TestAFrozenHostIsNotTheCommandsFault(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `echo $$ >&9; exec sleep 1000`)
	until := r.agent.Stood().Elect(1, short)
	var command int
	if _, err := fmt.Sscan(wait(t, "word of the command", r.said), &command); err != nil {
		t.Fatal(err)
	}
	all := []int{r.cmd.Process.Pid, r.guard(), command}
	for _, pid := range all {
		r.freeze(pid)
	}
	wait(t, "end of the lease", after(t, until))
	for _, pid := range all { // an earlier SIGCONT may have let a process kill this one
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	wait(t, "death", r.death)
	r.agent.Stood().Elect(2, long)
	wait(t, "word of the command", r.said)
	r.blames("the guard is late", "starting it again in", "in a row")
}

func TestALostLeadForgetsHowOftenTheCommandEnded(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `echo $DOYEN_TERM >&9; exit 1`)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.mourn()
	r.line("starting it again in 100ms")
	r.line("starting it again in 200ms")
	stood.Revoke("transferred", long)
	wait(t, "receipt", stood.Receipts())
	stood.Elect(2, long)
	r.line("no longer leading")
	r.line("starting it again in 100ms")
}

// The command ends by itself when its lease is about to end, so it must not start again.
func TestNothingIsStartedWhenTheLeaseIsAboutToEnd(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, config{}, `echo $DOYEN_TERM >&9; [ $DOYEN_TERM = 2 ] || cat `+gate+`; exec sleep 1000`)
	stood := r.agent.Stood()
	stood.Elect(1, short)
	for range 3 { // the start after the fourth end is delayed by 800 ms
		r.word("1")
		stood.Renew(1, short)
		r.signal(r.child(r.guard()), syscall.SIGKILL)
		wait(t, "death", r.death)
	}
	r.word("1")
	until := stood.Renew(1, short)
	wait(t, "moment", after(t, until-int64(short/3)-int64(200*time.Millisecond)))
	r.signal(r.child(r.guard()), syscall.SIGKILL)
	wait(t, "death", r.death)
	r.agent.Stood().Elect(2, long)
	r.word("2")
}

// A receipt that the agent gets after the deadline could end the next leadership.
func TestALateReceiptEndsTheCandidacy(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `echo up >&9; exec sleep 1000`)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.word("up")
	release := stood.HoldReceipts()
	in := 300 * time.Millisecond
	until := alarm.Now() + int64(in)
	stood.Revoke("transferred", in)
	wait(t, "death", r.death)
	wait(t, "deadline", after(t, until+int64(in)))
	release()
	r.agent.Stood()
}

func TestTheCommandHoldsTheConnectionAndDiesWithItsGuard(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `echo $$ >&9; exec sleep 1000`)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	var command int
	if _, err := fmt.Sscan(wait(t, "word of the command", r.said), &command); err != nil {
		t.Fatal(err)
	}
	if !holds(command, "socket:[") {
		t.Error("the command holds no copy of the campaign's connection")
	}
	// A frozen runner kills nothing, so the end of the guard must be enough.
	r.freeze(r.cmd.Process.Pid)
	r.signal(r.guard(), syscall.SIGKILL)
	wait(t, "death", r.death)
	r.signal(r.cmd.Process.Pid, syscall.SIGCONT)
	r.mourn()
	wait(t, "word of the next command", r.said)
}

// holds reports whether a process has a descriptor of that kind.
func holds(pid int, kind string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	all, _ := os.ReadDir(dir)
	for _, fd := range all {
		if target, err := os.Readlink(dir + "/" + fd.Name()); err == nil && strings.HasPrefix(target, kind) {
			return true
		}
	}
	return false
}
