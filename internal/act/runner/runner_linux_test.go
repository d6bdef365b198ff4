package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/act/runner"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

const (
	long = time.Hour // a lease that outlasts the test
	// short is long enough to start a command on a busy machine.
	short = 6 * time.Second
	// stubborn ignores SIGTERM, and so does its child.
	stubborn = `trap "" TERM; echo up >&9; (sleep 1000) & while :; do sleep 1000; done`
	// signalled writes a line when it gets SIGUSR1.
	signalled = `trap 'echo usr1 >&9' USR1; echo up >&9; while :; do sleep 0.1; done`
)

func TestTheCommandRunsWhileItLeadsAndTheReceiptFollowsItsEnd(t *testing.T) {
	t.Parallel()
	r := start(t, config{Grace: time.Second}, `trap 'echo asked >&9; exit 0' TERM
		echo $DOYEN_ELECTION $DOYEN_TERM $DOYEN_SOCKET >&9
		(sleep 1000) & wait`)
	stood := r.agent.Stood()
	for term, text := range []string{"0", "1", "2"}[1:] {
		stood.Elect(uint64(term+1), long)
		r.word("payments " + text + " " + r.agent.Socket())
		stood.Revoke("transferred", time.Minute)
		r.word("asked")
		wait(t, "death", r.death)
		wait(t, "receipt", stood.Receipts())
	}
	r.line("no longer leading payments (transferred): stopping sh")
	r.signal(r.cmd.Process.Pid, syscall.SIGTERM)
	r.status(0)
	wait(t, "withdrawal", stood.Gone())
}

// The end of the runner does not prove that the command has ended.
func TestItStandsWithoutProof(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, "")
	if proof := r.agent.Stood().Request.Proof; proof == nil || *proof {
		t.Error("it would have its agent take its end for that of everything the command started")
	}
}

func TestACommandThatIgnoresSIGTERMIsDeadBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, stubborn)
	stood := r.agent.Stood()
	stood.Elect(1, short)
	until := stood.Renew(1, short)
	r.word("up")
	stood.Revoke("drained", time.Duration(until-alarm.Now()))
	r.before(until)
	wait(t, "receipt", stood.Receipts())
}

func TestTheGraceBoundsTheWait(t *testing.T) {
	t.Parallel()
	r := start(t, config{Grace: time.Millisecond}, stubborn)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.word("up")
	stood.Revoke("drained", long)
	wait(t, "death", r.death)
	wait(t, "receipt", stood.Receipts())
	r.line("sh had to be killed")
}

// The frozen agent keeps the connection open, but sends no line.
func TestAFrozenAgentCostsTheCommandBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, stubborn)
	stood := r.agent.Stood()
	until := stood.Elect(1, short)
	r.word("up")
	r.before(until)
	r.agent.Stood() // again
}

// The agent goes on renewing, but the frozen runner does not read that.
func TestAFrozenRunnerCostsTheCommandBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, stubborn)
	stood := r.agent.Stood()
	until := stood.Elect(1, short)
	r.word("up")
	r.freeze(r.cmd.Process.Pid)
	stood.Renew(1, long)
	r.before(until)
	wait(t, "end of the candidacy, so that another host can lead", stood.Gone())
	r.signal(r.cmd.Process.Pid, syscall.SIGCONT)
	r.agent.Stood().Elect(2, long)
	r.word("up")
}

func TestAFrozenGuardCostsTheCommandBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `setsid sh -c 'trap "" TERM; sleep 1000' & `+stubborn)
	stood := r.agent.Stood()
	until := stood.Elect(1, short)
	r.word("up")
	r.freeze(r.guard())
	r.before(until)
	r.line("the guard is late")
	r.agent.Stood().Elect(2, long)
	r.word("up")
}

// The orders wait in the guard's socket while the guard is frozen. Only the last one counts.
func TestAGuardThatGotNoTimeObeysAllOrdersBeforeItJudges(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, signalled)
	stood := r.agent.Stood()
	stood.Elect(1, short)
	r.word("up")
	r.freeze(r.guard())
	until := stood.Renew(2, short)
	stood.Renew(3, long)
	r.line(", now under term 3")
	wait(t, "end of the lease", after(t, until))
	r.signal(r.cmd.Process.Pid, syscall.SIGUSR1)
	r.signal(r.guard(), syscall.SIGCONT)
	r.word("usr1")
	r.blames("nobody renewed it", "the guard is late", "has ended")
}

func TestAKilledRunnerLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `setsid sh -c '(trap "" TERM; echo up >&9; sleep 1000) &'; exec sleep 1000`)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.word("up")
	r.signal(r.cmd.Process.Pid, syscall.SIGKILL)
	// While anything acts, the connection must stay open.
	wait(t, "end of the connection", stood.Gone())
	ended := alarm.Now()
	if late := r.late(ended, ended, wait(t, "death", r.death)); late > 50*time.Millisecond {
		t.Errorf("something lived on for %v after the connection's end", late)
	}
}

func TestAKilledGuardIsReplacedAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `setsid sh -c '(trap "" TERM; sleep 1000) &'; echo up $DOYEN_TERM >&9; exec sleep 1000`)
	r.agent.Stood().Elect(1, long)
	r.word("up 1")
	r.signal(r.guard(), syscall.SIGKILL)
	wait(t, "death", r.death)
	r.word("up 1")
}

func TestWhatACommandLeavesBehindEndsWithIt(t *testing.T) {
	t.Parallel()
	r := start(t, config{Grace: time.Millisecond}, `setsid sh -c '(trap "" TERM; sleep 1000) &' && echo left >&9`)
	r.agent.Stood().Elect(1, long)
	r.word("left")
	wait(t, "death", r.death)
	r.line("sh left processes running")
	r.line("starting it again in 100ms")
	r.word("left")
}

func TestAFloodOfOutputIsNoShelter(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `echo up >&9; while :; do echo y; echo y; done | cat | cat >&2`)
	stood := r.agent.Stood()
	until := stood.Elect(1, short)
	r.word("up")
	stood.Revoke("resigned", time.Duration(until-alarm.Now()))
	go func() {
		for range r.lines { // stderr of the command is the runner's
		}
	}()
	r.before(until)
	wait(t, "receipt", stood.Receipts())
}

func TestTheStatusOfACommandThatRunsOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		script string
		status int
	}{
		{"exit 0", 0}, {"exit 7", 7}, {"kill -9 $$", 137}, {"exec /nowhere/nothing", 127},
	} {
		r := start(t, config{Restart: runner.RestartNever, Status: true}, test.script)
		stood := r.agent.Stood()
		stood.Elect(1, long)
		r.status(test.status)
		wait(t, "receipt", stood.Receipts())
		wait(t, "withdrawal", stood.Gone())
	}
}

// When the lead was lost, nobody knows how much the command has done.
func TestARunOnceIsNotBegunAgainAfterTheLeadWasLost(t *testing.T) {
	t.Parallel()
	once := config{Restart: runner.RestartNever, Status: true}
	r := start(t, once, `trap 'exit 5' TERM; echo up >&9; while :; do sleep 0.1; done`)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.word("up")
	stood.Revoke("transferred", time.Minute)
	r.line("sh is not started again")
	r.status(5)
	wait(t, "receipt", stood.Receipts())
	wait(t, "withdrawal", stood.Gone())

	r = start(t, once, `echo up >&9; exec sleep 1000`)
	until := r.agent.Stood().Elect(1, short)
	r.word("up")
	r.before(until)
	r.status(128 + int(syscall.SIGTERM))

	r = start(t, once, `echo up >&9; exec sleep 1000`)
	r.agent.Stood().Elect(1, long)
	r.word("up")
	r.agent.Stop()
	r.agent.Forget()
	r.agent.Listen()
	r.status(128 + int(syscall.SIGTERM))
}

func TestASignalEndsARunOnceWithTheStatusOfTheCommand(t *testing.T) {
	t.Parallel()
	r := start(t, config{Restart: runner.RestartNever, Status: true}, `trap 'exit 42' INT; echo up >&9; while :; do sleep 0.1; done`)
	r.agent.Stood().Elect(1, long)
	r.word("up")
	r.signal(r.cmd.Process.Pid, syscall.SIGINT)
	r.status(42)

	r = start(t, config{Restart: runner.RestartNever, Status: true}, `true`)
	r.agent.Stood()
	r.line("candidate in")
	r.signal(r.cmd.Process.Pid, syscall.SIGTERM)
	r.status(128 + int(syscall.SIGTERM))
}

func TestASecondSignalDoesNotWait(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `trap 'echo asked >&9' TERM; echo up >&9; while :; do sleep 0.1; done`)
	r.agent.Stood().Elect(1, long)
	r.word("up")
	r.signal(r.cmd.Process.Pid, syscall.SIGTERM)
	r.word("asked")
	r.signal(r.cmd.Process.Pid, syscall.SIGTERM)
	r.line("sh had to be killed")
	r.status(0)
}

func TestOtherSignalsArePassedOn(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `trap 'echo usr1 >&9' USR1; trap 'echo hup >&9' HUP; echo up >&9; while :; do sleep 0.1; done`)
	r.agent.Stood().Elect(1, long)
	r.word("up")
	r.signal(r.cmd.Process.Pid, syscall.SIGUSR1)
	r.word("usr1")
	r.signal(r.cmd.Process.Pid, syscall.SIGHUP)
	r.word("hup")
}

func TestACommandThatFailsIsStartedAgainUnderItsTermAndThenLetsOthersLead(t *testing.T) {
	t.Parallel()
	r := start(t, config{Restart: runner.RestartOnFailure}, `echo $DOYEN_TERM >&9; exit 1`)
	stood := r.agent.Stood()
	stood.Elect(4, long)
	r.mourn() // the next run may begin before the end of the last one is read from the pipe
	for range 5 {
		r.word("4")
	}
	r.line("letting another host lead payments")
	wait(t, "receipt", stood.Receipts())
	wait(t, "withdrawal", stood.Gone())
}

func TestACommandThatSucceedsIsDone(t *testing.T) {
	t.Parallel()
	r := start(t, config{Restart: runner.RestartOnFailure}, `exit 0`)
	r.agent.Stood().Elect(4, long)
	r.status(0)
}

func TestACommandThatCannotBeRunNeverStands(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"no-such-program", plain, "/", filepath.Join(plain, "x")} {
		r := start(t, config{Command: []string{command}}, "")
		if line := r.line("failed:"); !strings.Contains(line, "find the command") {
			t.Errorf("%s: %s", command, line)
		}
		r.status(99)
	}
}

func TestANewTermGoesOnWithTheSameCommand(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, signalled)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.word("up")
	stood.Renew(5, long)
	r.line(", now under term 5")
	r.signal(r.cmd.Process.Pid, syscall.SIGUSR1)
	r.word("usr1")
}

// A fork bomb whose processes leave their group.
func TestWhatForksWithoutEndIsDeadInTime(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `trap "" TERM; echo up >&9
		flee() { while :; do setsid sh -c 'trap "" TERM; sleep 0.1' & sleep 0.05; done; }
		flee & flee`)
	stood := r.agent.Stood()
	until := stood.Elect(1, short)
	r.word("up")
	r.before(until)
	wait(t, "receipt", stood.Receipts())
}

func TestTheCommandHasThePriorityThatTheRunnerWasGiven(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `sleep 0.05; echo $(nice) $(ps -o ni= -p $PPID) >&9; exec sleep 1000`)
	r.agent.Stood().Elect(1, long)
	var command, guard int
	if _, err := fmt.Sscan(wait(t, "word of it", r.said), &command, &guard); err != nil {
		t.Skipf("no nice and ps here: %v", err)
	}
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	if command != 20-own || guard > command {
		t.Errorf("nice value %d of the command, %d of its guard, %d here", command, guard, 20-own)
	}
}
