package keeper

import (
	"syscall"
	"testing"
)

// While the keeper is frozen, the life runs on. Then the keeper handles everything that it missed.
func TestAKeeperThatWasFrozenGoesOnWithItsLife(t *testing.T) {
	k := keep(t, nil, "run")
	life := k.life()
	for range 3 {
		k.send(k.cmd.Process.Pid, syscall.SIGSTOP)
		if _, err := syscall.Wait4(k.cmd.Process.Pid, nil, syscall.WUNTRACED, nil); err != nil {
			t.Fatal(err)
		}
		k.send(life, syscall.SIGHUP)
		if s := k.line("signal"); s != "hangup" {
			t.Fatalf("the life got %s", s)
		}
		k.send(k.cmd.Process.Pid, syscall.SIGCONT)
		k.send(k.cmd.Process.Pid, syscall.SIGHUP)
		if s := k.line("signal"); s != "hangup" {
			t.Fatalf("the life got %s", s)
		}
	}
	k.send(k.cmd.Process.Pid, syscall.SIGSTOP)
	k.send(life, syscall.SIGKILL)
	k.send(k.cmd.Process.Pid, syscall.SIGCONT)
	if why := k.line("before"); why != "it was killed by signal 9 (killed)" {
		t.Errorf("the former life: %q", why)
	}
	k.life()
	k.send(k.cmd.Process.Pid, syscall.SIGSTOP)
	k.send(k.cmd.Process.Pid, syscall.SIGTERM)
	k.send(k.cmd.Process.Pid, syscall.SIGCONT)
	if s := k.line("signal"); s != "terminated" {
		t.Errorf("the life got %s", s)
	}
	if code := k.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// The first kill may be the keeper's or the life's. No process is left, and no life follows.
func TestAKeeperAndItsLifeThatAreKilledTogetherLeaveNothing(t *testing.T) {
	for range 10 {
		for _, keeperFirst := range []bool{true, false} {
			k := keep(t, nil, "run")
			both := []int{k.life(), k.cmd.Process.Pid}
			if keeperFirst {
				both[0], both[1] = both[1], both[0]
			}
			_ = syscall.Kill(both[0], syscall.SIGKILL)
			_ = syscall.Kill(both[1], syscall.SIGKILL) // it may have ended with the first
			for k.lines.Scan() {                       // until no process holds the other end of the pipe
			}
			if err := k.lines.Err(); err != nil {
				t.Error(err)
			}
			if code := k.code(); code != 128+int(syscall.SIGKILL) {
				t.Errorf("exit code %d", code)
			}
		}
	}
}

// Each life runs before it dies, so the keeper does not give up. It waits between lives, and can be stopped
// then.
func TestAnAgentThatDiesAtOnceAtEveryStartCanBeStopped(t *testing.T) {
	k := keep(t, nil, "exit", "3")
	for range failures + 2 {
		k.life()
	}
	k.send(k.cmd.Process.Pid, syscall.SIGTERM)
	if code := k.code(); code != 0 && code != 3 { // 3: the signal reached a life that had just started
		t.Errorf("exit code %d", code)
	}
}

func TestSignalsAtOnceAreOneRequest(t *testing.T) {
	k := keep(t, nil, "run")
	k.life()
	k.send(k.cmd.Process.Pid, syscall.SIGTERM)
	k.send(k.cmd.Process.Pid, syscall.SIGINT)
	if code := k.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
