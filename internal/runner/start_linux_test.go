package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

// A command that the runner started now would have to be ended at once.
func TestTheRunnerStartsNothingWhenTheLeaseIsAboutToEnd(t *testing.T) {
	const until, lease = int64(time.Hour), 6 * time.Second
	termAt := plan(until, lease).TermAt
	for _, test := range []struct {
		name      string
		leading   bool
		notBefore int64
		now       int64
		want      bool
	}{
		{"time is left", true, 0, termAt - 1, true},
		{"SIGTERM is due", true, 0, termAt, false},
		{"between SIGTERM and the end", true, 0, until - 1, false},
		{"after the end", true, 0, until + 1, false},
		{"before the wait is over", true, termAt - 2, termAt - 3, false},
		{"when the wait is over", true, termAt - 2, termAt - 2, true},
		{"the wait ends too late", true, termAt, termAt, false},
		{"not leading", false, 0, termAt - 1, false},
	} {
		r := &runner{leading: test.leading, notBefore: test.notBefore, until: until, lease: lease}
		if got := r.mayStart(test.now); got != test.want {
			t.Errorf("%s: it may start: %v, want %v", test.name, got, test.want)
		}
	}
}

// The order may have waited to be read until the lease was about to end.
func TestTheGuardStartsNothingWhenTheLeaseIsAboutToEnd(t *testing.T) {
	for _, test := range []struct {
		name   string
		termAt int64
		want   report
	}{
		{"SIGTERM is due", alarm.Now(), report{Kind: isGone, Why: tooLate}},
		{"time is left", never, report{Kind: isFailed, Errno: int(syscall.EPERM), Why: syscall.EPERM.Error()}}, // it tried
	} {
		runner, own := linked(t)
		g := &guard{link: own, cgroup: &cgroup{}, forks: make(chan *syscall.ProcAttr, 1), made: make(chan birth, 1)}
		g.made <- birth{err: syscall.EPERM} // what comes of making a process
		g.start(order{Do: doStart, Term: 1, Copy: -1, Schedule: schedule{TermAt: test.termAt, KillAt: never}})
		var got report
		if err := runner.receive(&got); err != nil {
			t.Fatal(err)
		}
		if got != test.want || (len(g.forks) == 1) != (got.Kind == isFailed) || g.command != nil {
			t.Errorf("%s: it reports %+v, want %+v; processes asked for: %d", test.name, got, test.want, len(g.forks))
		}
	}
}

// A receipt that the agent takes after the deadline could be for the leadership
// that comes next.
func TestACandidacyGoesOnOnlyAfterAReceiptInTime(t *testing.T) {
	const until = int64(time.Hour)
	for _, test := range []struct {
		err     error
		revoked bool
		now     int64
		want    bool
	}{
		{nil, true, until - 1, true},
		{nil, true, until, false},
		{nil, false, until - 1, false},
		{errEnded, true, until - 1, false},
	} {
		r := &runner{revoked: test.revoked, until: until}
		if got := r.goesOn(test.err, test.now); got != test.want {
			t.Errorf("%+v: it goes on: %v", test, got)
		}
	}
}

// Who was not let run for half of the time to kill in was late itself.
func TestTheGuardIsNotBlamedForADelayOfTheRunners(t *testing.T) {
	const woken, lease = int64(time.Hour), 6 * time.Second
	for still, want := range map[time.Duration]bool{0: false, margin(lease) / 2: false, margin(lease)/2 + 1: true, lease: true} {
		r := &runner{woken: woken, lease: lease}
		if got, own := r.stoodStill(woken + int64(still)); got != still || own != want {
			t.Errorf("after %v: it stood still for %v, by itself: %v; want %v", still, got, own, want)
		}
	}
}

// ofTest is a configuration for what says little.
func ofTest() Config {
	return Config{Election: "payments", Command: []string{"pay"}, lines: make(chan string, 4)}
}

// A command that ends with the lease may have been made to: that is not counted.
func TestAnEndWithTheLeaseIsNotTheCommandsOwn(t *testing.T) {
	for _, test := range []struct {
		leading bool
		until   int64
		ends    int
	}{{true, never - 1, 1}, {true, alarm.Now(), 0}, {false, never - 1, 0}} {
		r := &runner{Config: ofTest(), leading: test.leading, until: test.until, lease: time.Second, began: alarm.Now()}
		r.relax(1)
		if r.ends != test.ends || (r.notBefore > 0) != (test.ends > 0) {
			t.Errorf("%+v: counted %d ends, no start until %d", test, r.ends, r.notBefore)
		}
	}
}

// What the command did under a lead that is lost says nothing about the next one.
func TestALostLeadForgetsHowOftenTheCommandEndedBefore(t *testing.T) {
	for name, lose := range map[string]func(*runner){
		"lost":            func(r *runner) { r.lose("a reason", true) },
		"ended by itself": func(r *runner) { r.gone(report{Kind: isGone, Why: byLease}) },
	} {
		r := &runner{Config: ofTest(), leading: true, ends: 3, notBefore: never}
		if lose(r); r.ends != 0 || r.notBefore != 0 || r.leading {
			t.Errorf("%s: %d ends are counted, no start until %d, leading: %v", name, r.ends, r.notBefore, r.leading)
		}
	}
}

// The kernel ends the command when the thread that made it is gone. A signal that
// comes after the one of the kernel changes nothing.
func TestWhatAThreadMadeEndsWithIt(t *testing.T) {
	var child *exec.Cmd
	thread := 0
	made, ended := make(chan error), make(chan struct{})
	defer close(ended)
	for thread == 0 {
		go func() {
			runtime.LockOSThread()              // and never unlocked: the thread ends with this
			if unix.Gettid() == unix.Getpid() { // the first one does not end
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

// What a process inherits is what is not closed on exec.
func TestTheCommandInheritsACopyOfTheConnection(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	sent, err := unix.Dup(int(writer.Fd())) // the guard closes it
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
	g := &guard{link: own, cgroup: &cgroup{}, forks: make(chan *syscall.ProcAttr, 1), made: make(chan birth, 1)}
	g.made <- birth{pid: child.Process.Pid}
	g.start(order{Do: doStart, Term: 1, Copy: sent, Schedule: schedule{TermAt: never, KillAt: never}})
	var got report
	if err := runner.receive(&got); err != nil || got.Kind != isStarted {
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
