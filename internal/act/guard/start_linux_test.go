package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

// The order may arrive when the lease is about to end.
func TestTheGuardStartsNothingWhenTheLeaseIsAboutToEnd(t *testing.T) {
	for _, test := range []struct {
		name   string
		termAt int64
		want   Report
	}{
		{"SIGTERM is due", alarm.Now(), Report{Kind: Gone, Why: TooLate}},
		{"time is left", never, Report{Kind: Failed, Errno: int(syscall.EPERM), Why: syscall.EPERM.Error()}}, // the guard tried to start it
	} {
		runner, own := linked(t)
		g := &process{link: own, forks: make(chan fork, 1)}
		g.start(&Order{Do: Start, Term: 1, Schedule: Schedule{TermAt: test.termAt, KillAt: never}})
		if g.command != nil {
			g.born(birth{err: syscall.EPERM}) // the outcome of the attempt to start a process
		}
		var got Report
		if err := json.NewDecoder(runner.conn).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if got != test.want || (len(g.forks) == 1) != (got.Kind == Failed) || g.command != nil {
			t.Errorf("%s: it reports %+v, want %+v; processes asked for: %d", test.name, got, test.want, len(g.forks))
		}
	}
}

// If a guard is killed between two runs, the next command was not started, so that is not the command's
// failure.
func TestARunThatItsGuardDoesNotReadHasLostItsGuard(t *testing.T) {
	runner, own := linked(t)
	own.conn.Close()
	w := &waiting{Run: Run{Line: "true", Output: io.Discard}, guard: &Guard{conn: runner.conn}, until: never}
	if err := w.start(0, ""); !errors.Is(err, ErrGuard) {
		t.Errorf("it fails for %v, want %v", err, ErrGuard)
	}
}

// The kernel kills the command when the thread that started it ends. A later signal changes nothing.
func TestWhatAThreadMadeEndsWithIt(t *testing.T) {
	var child *exec.Cmd
	thread := 0
	made, ended := make(chan error), make(chan struct{})
	defer close(ended)
	for thread == 0 {
		go func() {
			runtime.LockOSThread()              // without an unlock, the thread ends with this goroutine
			if unix.Gettid() == unix.Getpid() { // the first thread of a process does not end
				made <- nil
				<-ended
				runtime.UnlockOSThread()
				return
			}
			child = exec.Command("sleep", "1000")
			child.SysProcAttr = attributes(0)
			err := child.Start()
			thread = unix.Gettid()
			made <- err
		}()
		if err := <-made; err != nil {
			t.Fatal(err)
		}
	}
	for path := fmt.Sprintf("/proc/self/task/%d", thread); ; runtime.Gosched() {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	_ = child.Process.Signal(syscall.SIGTERM)
	_ = child.Wait()
	if status := child.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("the command was ended by %v, not by the kernel", status.Signal())
	}
}

// A process inherits the descriptors that are not closed on exec.
func TestTheCommandInheritsACopyOfTheConnection(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	sent, err := unix.Dup(int(writer.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	runner, own := linked(t)
	g := &process{link: own, forks: make(chan fork, 1)}
	g.start(&Order{Do: Start, Term: 1, files: []int{sent}, Schedule: Schedule{TermAt: never, KillAt: never}})
	g.born(birth{pid: child.Process.Pid})
	var got Report
	if err := json.NewDecoder(runner.conn).Decode(&got); err != nil || got.Kind != Started {
		t.Fatalf("%+v: %v", got, err)
	}
	kept := g.command.kept
	if kept < keepFrom {
		t.Fatalf("the copy is descriptor %d", kept)
	}
	defer unix.Close(kept)
	var of, copied unix.Stat_t
	if err := errors.Join(unix.Fstat(int(writer.Fd()), &of), unix.Fstat(kept, &copied)); err != nil {
		t.Fatal(err)
	}
	flags, err := unix.FcntlInt(uintptr(kept), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 || of.Ino != copied.Ino {
		t.Errorf("the command does not inherit it: flags %d, %v; it is a copy: %v", flags, err, of.Ino == copied.Ino)
	}
}

// The command may already run while its guard does not know its process yet.
func TestASignalBeforeTheCommandsProcessIsKnownIsPassedOn(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill()
	_, own := linked(t)
	g := &process{link: own, forks: make(chan fork, 1)}
	g.start(&Order{Do: Start, Term: 1, Schedule: Schedule{TermAt: never, KillAt: never}})
	g.command.pass(syscall.SIGUSR1)
	g.born(birth{pid: child.Process.Pid})
	_ = child.Process.Signal(syscall.SIGTERM) // so that the test ends even if the first signal was lost
	_ = child.Wait()
	if status := child.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGUSR1 {
		t.Errorf("the command got %v", status.Signal())
	}
}
