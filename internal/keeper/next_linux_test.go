package keeper

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/executable"
	"golang.org/x/sys/unix"
)

// Exit code 0 is a clean end only if the life has reported that it stops.
func TestALifeThatEndsWithoutSayingSoIsFollowedByTheNext(t *testing.T) {
	k := keep(t, nil, "exit", "0")
	if first, second := k.life(), k.life(); first == second {
		t.Error("the same life")
	}
	if why := k.line("before"); why != "it ended with exit code 0" {
		t.Errorf("the former life: %q", why)
	}
}

// The exit code must not look like a clean end: what depends on the service has to stop.
func TestAKeeperThatGivesUpFails(t *testing.T) {
	for content, want := range map[string]int{"": exitFailed, "#!/bin/sh\nexit 7\n": 7, "#!/bin/sh\nexit 0\n": exitFailed} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(t.TempDir(), "program")
		if err := os.Symlink(self, link); err != nil {
			t.Fatal(err)
		}
		k := keepProgram(t, link, nil, "run")
		life := k.life()
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if content != "" {
			if err := executable.Write(link, []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		k.send(life, syscall.SIGKILL)
		if code := k.code(); code != want {
			t.Errorf("%q: exit code %d, want %d", content, code, want)
		}
		if !strings.Contains(k.log.String(), `"level":"ERROR","msg":"the agent can't be started again: giving up","part":"keeper"`) {
			t.Errorf("%q: its log:\n%s", content, &k.log)
		}
	}
}

// A signal that comes while a life starts waits until the life catches it.
func TestALifeThatStartsEndsCleanly(t *testing.T) {
	k := keep(t, nil, "late")
	k.line("begun")
	k.send(k.cmd.Process.Pid, syscall.SIGTERM)
	if s := k.line("signal"); s != "terminated" {
		t.Errorf("the life got %s", s)
	}
	if code := k.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestTheWatchdogIsFedWhileNoLifeRuns(t *testing.T) {
	k := &keeper{watchdog: 30 * time.Millisecond, feedAt: never}
	k.feed(ms)
	if k.feedAt != 11*ms {
		t.Errorf("fed next at %d", k.feedAt)
	}
	k.pid = 7
	if k.feed(2 * ms); k.feedAt != never {
		t.Error("a life feeds it itself")
	}
}

// The life's keeper has another version of the page. The life must not become a keeper itself.
func TestALifeWhoseKeeperHasAnotherPageRunsWithoutOne(t *testing.T) {
	page, err := unix.MemfdCreate("page", unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(pageVariable, strconv.Itoa(page))
	l := Attach()
	if l == nil {
		t.Fatal("no life")
	}
	if os.Getenv(pageVariable) != "" {
		t.Error("what the life starts would have a keeper too")
	}
	if _, err := l.Try(t.Context()); err != ErrOlder {
		t.Errorf("a trial: %v", err)
	}
	l.Begins(1)
	l.Tells(Known{Peer: "p"})
	l.Runs(time.Second, time.Second)
	if next := l.Ticks(1, 2); next != 2 {
		t.Errorf("ticks at %d", next)
	}
}

// Ctrl-C signals all processes of the group, so the life gets it twice.
func TestASignalToTheGroupIsOneRequest(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k := keepAs(t, &syscall.SysProcAttr{Setpgid: true}, self, nil, "run")
	k.life()
	k.send(-k.cmd.Process.Pid, syscall.SIGINT)
	if s := k.line("signal"); s != "interrupt" {
		t.Errorf("the life got %s", s)
	}
	if code := k.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// In a container the keeper is process 1, which the kernel protects from signals.
func TestAKeeperThatIsProcess1(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a PID namespace; CI runs this as root")
	}
	as := func() *syscall.SysProcAttr { return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID} }
	k := keepAs(t, as(), self, nil, "run")
	if life := k.life(); life == 1 {
		t.Error("the life is process 1")
	}
	k.send(k.cmd.Process.Pid, syscall.SIGTERM)
	if s := k.line("signal"); s != "terminated" {
		t.Errorf("the life got %s", s)
	}
	if code := k.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if code := keepAs(t, as(), self, nil, "exit", "78").code(); code != exitConfig {
		t.Errorf("exit code %d", code)
	}
}

func TestAStoppedProcessIsNotTakenForASlowOne(t *testing.T) {
	cmd := exec.Command("cat")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if traced, stopped := condition(cmd.Process.Pid); traced || stopped {
		t.Errorf("while it runs: traced %t, stopped %t", traced, stopped)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(cmd.Process.Pid, nil, syscall.WUNTRACED, nil); err != nil {
		t.Fatal(err)
	}
	if traced, stopped := condition(cmd.Process.Pid); traced || !stopped {
		t.Errorf("when it was stopped: traced %t, stopped %t", traced, stopped)
	}
}
