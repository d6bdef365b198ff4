package runner_test

import (
	"strings"
	"syscall"
	"testing"
)

// The agent's next life does not know the leadership.
func TestAnAgentThatLostItsRecordEndsTheCommandAtOnce(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `echo up >&9; exec sleep 1000`)
	r.agent.Stood().Elect(1, long)
	r.word("up")
	r.agent.Stop()
	r.agent.Forget()
	r.agent.Listen()
	wait(t, "death", r.death)
	r.agent.Stood().Elect(2, long)
	r.word("up")
}

func TestTheCommandRunsOnWhenItsAgentDiesAndComesBack(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `trap 'echo usr1 >&9' USR1; echo up >&9; while :; do sleep 0.1; done`)
	r.agent.Stood().Elect(1, long)
	r.word("up")
	for range 3 {
		r.agent.Stop()
		r.agent.Listen()
		again := r.agent.Resumed()
		if again.Resumed.Term != 1 {
			t.Errorf("resumed by %+v", again.Resumed)
		}
		again.Renew(1, long)
		r.line("the agent was started again: still leading payments, term 1")
	}
	select {
	case <-r.death:
		t.Fatal("the command was ended")
	default:
	}
	r.signal(r.cmd.Process.Pid, syscall.SIGUSR1)
	r.word("usr1") // from the same run
	if said := r.heard.String(); strings.Contains(said, "no longer") || strings.Contains(said, "connection") {
		t.Errorf("said %q", said)
	}
}

// While the agent is away, the deadline stays.
func TestACommandWithoutItsAgentIsDeadBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, stubborn)
	until := r.agent.Stood().Elect(1, short)
	r.word("up")
	r.agent.Stop()
	r.before(until)
	r.agent.Listen()
	r.agent.Stood().Elect(2, long)
	r.word("up")
}

// The guard gets a copy of the new connection too. If the runner dies, the guard gives the receipt and closes
// the connection.
func TestAGuardHoldsTheConnectionThatWasResumed(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, `echo up >&9; exec sleep 1000`)
	r.agent.Stood().Elect(1, long)
	r.word("up")
	r.agent.Stop()
	r.agent.Listen()
	again := r.agent.Resumed()
	again.Renew(1, long)
	r.line("still leading payments")
	r.signal(r.cmd.Process.Pid, syscall.SIGKILL)
	wait(t, "death", r.death)
	wait(t, "receipt", again.Receipts())
	wait(t, "withdrawal", again.Gone())
}
