package proof

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

// identified is what a life of the agent records of the process at the other end.
func identified(t *testing.T, as string) (p record.Program, kill, tell func(), child func() int) {
	t.Helper()
	cmd, conn, out, tell := connected(t, as)
	p = Identify(conn, int64(boottime.Now()), true)
	if p.PID != int32(cmd.Process.Pid) || p.Started == 0 || p.Space == 0 || p.Sockets[0] == 0 {
		t.Fatalf("identified as %+v", p)
	}
	child = func() int {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(line[:len(line)-1])
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	return p, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }, tell, child
}

func recorded(t *testing.T, p record.Program) *Process {
	t.Helper()
	process, err := Recorded(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Close)
	return process
}

func TestAProcessThatDiedWhileNobodyLookedIsGone(t *testing.T) {
	p, kill, _, _ := identified(t, "connect")
	kill()
	if process := recorded(t, p); !isGone(process) || !process.Alone() {
		t.Errorf("gone %t, alone %t", isGone(process), process.Alone())
	}
	p.PID, p.Started = int32(unix.Getpid()), 1 // another process has the number by now
	if process := recorded(t, p); !isGone(process) || !process.Alone() {
		t.Errorf("its number is another's: gone %t, alone %t", isGone(process), process.Alone())
	}
}

func TestAProcessThatLivesIsFollowedByWhatIsRecorded(t *testing.T) {
	p, kill, _, _ := identified(t, "connect")
	process := recorded(t, p)
	if isGone(process) {
		t.Fatal("it is gone, and lives")
	}
	kill()
	waitGone(t, process)
	if !process.Alone() {
		t.Error("another process is said to hold its connection")
	}
}

// The record names the parent only: its end proves nothing about the child.
func TestAConnectionThatAChildHoldsIsNoProofForTheNextLife(t *testing.T) {
	p, _, tell, child := identified(t, "bequeath")
	pid := child()
	defer func() { _ = unix.Kill(pid, unix.SIGKILL) }()
	process := recorded(t, p)
	tell()
	waitGone(t, process)
	if process.Alone() {
		t.Error("its child holds the connection, and is not noticed")
	}
}

func TestWhatIsNotKnownProvesNothing(t *testing.T) {
	p, kill, _, _ := identified(t, "connect")
	kill()
	for name, change := range map[string]func(*record.Program){
		"another container": func(p *record.Program) { p.Space++ },
		"no socket":         func(p *record.Program) { p.Sockets = [record.MaxSockets]uint64{} },
		"more sockets":      func(p *record.Program) { p.More = true },
		"no start":          func(p *record.Program) { p.Started = 0 },
		"no process":        func(p *record.Program) { p.PID = 0 },
	} {
		q := p
		change(&q)
		if process, err := Recorded(q); err == nil {
			t.Errorf("%s: gone %t, alone %t", name, isGone(process), process.Alone())
		}
	}
}

// A process with two connections is alone when both are closed.
func TestAnEarlierConnectionThatAChildHoldsCounts(t *testing.T) {
	before, _, _, child := identified(t, "bequeath")
	pid := child()
	defer func() { _ = unix.Kill(pid, unix.SIGKILL) }()
	cmd, conn, _, _ := connected(t, "connect")
	process, err := Of(conn, int64(boottime.Now()), before.Sockets[0])
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	if held := Held([]uint64{before.Sockets[0], 1}); len(held) != 1 || held[0] != before.Sockets[0] {
		t.Errorf("held are %v", held)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitGone(t, process)
	if process.Alone() {
		t.Error("a child holds an earlier connection, and is not noticed")
	}
}
