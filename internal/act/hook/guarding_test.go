package hook

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

// run is a process in a group of its own, which ends by itself when its input does.
type run struct {
	cmd   *exec.Cmd
	input io.Closer
	ended chan error
}

func startRun(t *testing.T) run {
	t.Helper()
	r := run{cmd: exec.Command("cat"), ended: make(chan error, 1)}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if r.input, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.input.Close() })
	go func() { r.ended <- r.cmd.Wait() }()
	return r
}

// await demands that the process has ended by itself, or been killed.
func (r run) await(t *testing.T, killed bool) {
	t.Helper()
	select {
	case err := <-r.ended:
		if (err != nil) != killed {
			t.Errorf("it ended with %v, want killed: %v", err, killed)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

// A guard that was not let run finds many lines at once: a deadline that has
// passed may have been prolonged since, or the run may have ended, and its number
// may be another process's.
func TestAGuardThatGotNoTimeHearsAllBeforeItJudges(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range pair {
		unix.CloseOnExec(fd)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		t.Fatal(err)
	}
	agent := os.NewFile(uintptr(pair[1]), "agent")
	defer agent.Close()
	a, err := alarm.New()
	if err != nil {
		t.Fatal(err)
	}
	prolonged, over, late := startRun(t), startRun(t), startRun(t)
	past := alarm.Now() - 1
	say := func(format string, args ...any) {
		if _, err := fmt.Fprintf(agent, format, args...); err != nil {
			t.Error(err)
		}
	}
	say("run 1 %d %d\nrun 2 %d %d\nrun 3 %d %d\n", prolonged.cmd.Process.Pid, past, over.cmd.Process.Pid, past, late.cmd.Process.Pid, past)
	for range 100 { // more than one read takes
		say("until 1 %d\nuntil 4 %d\nuntil 5 %d\n", past, past, past)
	}
	say("until 1 %d\nover 2\n", alarm.Now()+int64(time.Hour))
	a.Set(past)
	ended := make(chan error, 1)
	go func() {
		ended <- (&guarding{alarm: a, runs: map[uint64]*guarded{}}).loop(os.NewFile(uintptr(pair[0]), "guard"))
	}()
	late.await(t, true) // it has judged
	killed := make([]byte, 100)
	if n, err := agent.Read(killed); string(killed[:n]) != "killed 3\n" {
		t.Errorf("the guard says %q, %v", killed[:n], err)
	}
	say("over 1\n")
	agent.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	prolonged.input.Close()
	prolonged.await(t, false)
	over.input.Close()
	over.await(t, false)
}
