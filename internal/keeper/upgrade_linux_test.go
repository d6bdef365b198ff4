package keeper

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// upgradable is a keeper whose program can be replaced.
type upgradable struct {
	*kept
	program string
	content []byte
}

func keepUpgradable(t *testing.T, env []string, args ...string) *upgradable {
	t.Helper()
	return keepUpgradableAs(t, nil, env, args...)
}

func keepUpgradableAs(t *testing.T, as *syscall.SysProcAttr, env []string, args ...string) *upgradable {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u := &upgradable{program: filepath.Join(t.TempDir(), "program")}
	if u.content, err = os.ReadFile(self); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, u.program); err != nil {
		t.Fatal(err)
	}
	u.kept = newKept(t, u.program, env, args...)
	u.cmd.SysProcAttr = as
	u.start(nil)
	return u
}

// replace puts another file in the program's place.
func (u *upgradable) replace() {
	u.t.Helper()
	other := filepath.Join(u.t.TempDir(), "other")
	syscall.ForkLock.RLock() // else a process that another test starts may have the file open, and it can't be executed
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(other, u.content, 0o700); err != nil {
		u.t.Fatal(err)
	}
	if err := os.Rename(other, u.program); err != nil {
		u.t.Fatal(err)
	}
}

// restart replaces the program, and returns the life that runs it.
func (u *upgradable) restart(life int) int {
	u.t.Helper()
	u.replace()
	u.send(life, syscall.SIGUSR1)
	return u.life()
}

func (u *upgradable) stop() {
	u.t.Helper()
	u.send(u.cmd.Process.Pid, syscall.SIGTERM)
	if s := u.line("signal"); s != "terminated" {
		u.t.Errorf("the life got %s", s)
	}
	if code := u.code(); code != 0 {
		u.t.Errorf("exit code %d", code)
	}
}

// await waits until a line has the text.
func (u *upgradable) await(text string) {
	u.t.Helper()
	for u.lines.Scan() {
		if strings.Contains(u.lines.Text(), text) {
			return
		}
	}
	u.t.Fatalf("it ended before a line with %q", text)
}

const upgraded = "the keeper is that of the agent's program now"

// The keeper goes on with the same life: it sees its end, and passes signals on to it once.
func TestAKeeperTurnsIntoThatOfTheProgramThatItsLifeRuns(t *testing.T) {
	t.Parallel()
	k := keepUpgradable(t, nil, "run")
	life := k.life()
	for range 2 { // two restarts in a row, the second before the keeper has followed the first
		life = k.restart(life)
	}
	for range 2 {
		k.await(upgraded)
		k.send(life, syscall.SIGKILL)
		if why := k.line("before"); why != "it was killed by signal 9 (killed)" {
			t.Fatalf("the former life: %q", why)
		}
		life = k.life()
		k.send(k.cmd.Process.Pid, syscall.SIGHUP)
		if s := k.line("signal"); s != "hangup" {
			t.Fatalf("the life got %s", s)
		}
		life = k.restart(life)
	}
	k.stop()
}

// The kernel ties the life to the thread of its keeper that started it: it is the one that goes on.
func TestNoLifeOutlivesAKeeperThatWasUpgraded(t *testing.T) {
	t.Parallel()
	k := keepUpgradable(t, nil, "run")
	k.restart(k.life())
	k.await(upgraded)
	k.send(k.cmd.Process.Pid, syscall.SIGKILL)
	for k.lines.Scan() { // ends when no process holds the other end
	}
	if err := k.lines.Err(); err != nil {
		t.Error(err)
	}
}

func TestAnUpgradedKeeperWatchesItsLife(t *testing.T) {
	t.Parallel()
	k := keepUpgradable(t, nil, "run")
	life := k.restart(k.life())
	k.await(upgraded)
	k.send(life, syscall.SIGSTOP)
	if why := k.line("before"); why != "it did not answer, and its keeper killed it" {
		t.Errorf("the former life: %q", why)
	}
	k.life()
	k.stop()
}

// The life's socket stays, and the service manager goes on hearing the main process.
func TestAnUpgradedKeeperPassesNotificationsOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "n")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := manager.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	k := keepUpgradable(t, []string{"NOTIFY_SOCKET=" + path}, "run")
	k.restart(k.life())
	k.await(upgraded)
	k.send(k.cmd.Process.Pid, syscall.SIGHUP)
	k.line("signal")
	b := make([]byte, 1000)
	for {
		n, err := manager.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if string(b[:n]) == "STATUS=reloaded" {
			break
		}
	}
	k.stop()
}

func TestAKeeperThatCanNotBeUpgradedGoesOn(t *testing.T) {
	for what, c := range map[string]struct {
		life string
		then func(k *upgradable)
		says string
	}{
		"the program is older":              {life: "old", says: "that program can't take over"},
		"the program can't be executed":     {life: "run", then: func(k *upgradable) { os.Chmod(k.program, 0o600) }, says: "permission denied"},
		"the program was replaced again":    {life: "run", then: func(k *upgradable) { k.replace() }, says: "the program file was replaced after"},
		"the program was removed meanwhile": {life: "run", then: func(k *upgradable) { os.Remove(k.program) }, says: "no such file"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := keepUpgradable(t, nil, c.life)
			k.restart(k.life())
			if c.then != nil {
				c.then(k)
			}
			k.await("this keeper can't turn into that of the agent's program, and goes on\",\"part\":\"keeper\",\"program\":\"" + k.program + "\",\"err\":\"" + c.says)
			k.send(k.cmd.Process.Pid, syscall.SIGHUP)
			if s := k.line("signal"); s != "hangup" {
				t.Errorf("the life got %s", s)
			}
			k.stop()
		})
	}
}

func TestAKeeperThatIsProcess1StaysWhatItIs(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a PID namespace; CI runs this as root")
	}
	k := keepUpgradableAs(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, nil, "run")
	k.life()
	k.replace()
	k.send(k.cmd.Process.Pid, syscall.SIGUSR1)
	k.life()
	k.await("the kernel drops the signals of a first process that starts")
	k.stop()
}

// A signal that was caught before is handled first, and one that comes after a failure is caught.
func TestASignalBeforeAnUpgradeIsHandledFirst(t *testing.T) {
	k := &keeper{ends: make(chan os.Signal, 8), others: make(chan os.Signal, 8), children: make(chan os.Signal, 1),
		logger: slog.New(slog.DiscardHandler), fd: -1}
	k.catch()
	defer func() {
		signal.Stop(k.ends)
		signal.Stop(k.others)
		signal.Stop(k.children)
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 100 {
		// To this thread, which gets it before it goes on: another may be slow to.
		if err := unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		k.compared = true
		if err := k.become("/nowhere"); err != nil || k.compared {
			t.Fatalf("it went on in spite of a signal: %v", err)
		}
		if s := <-k.ends; s != syscall.SIGTERM {
			t.Errorf("got %v", s)
		}
		if err := k.become("/nowhere"); err == nil {
			t.Fatal("no error")
		}
		if len(k.ends) > 0 {
			t.Fatal("it came twice")
		}
	}
}

// parent starts a life as a keeper does, and becomes a keeper of the program that is handed that
// over, with the life's process as PID and the page as PAGE.
func parent(program, handed string) int {
	runtime.LockOSThread()
	_, page, err := newPage()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"fake", "life", "run"}, &syscall.ProcAttr{
		Env: append(os.Environ(), fmt.Sprintf("%s=%d", pageVariable, pageAt)), Files: []uintptr{0, 1, 2, uintptr(page)},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
	if err == nil {
		if _, err = os.Stdin.Read(make([]byte, 1)); err == nil { // the life catches signals
			_, _ = unix.FcntlInt(uintptr(page), unix.F_SETFD, 0)
			state := strings.NewReplacer("PID", fmt.Sprint(pid), "PAGE", fmt.Sprint(page)).Replace(handed)
			err = unix.Exec("/proc/self/exe", []string{"fake", Word, "json,info", program, "fake", "life", "run"},
				append(os.Environ(), stateVariable+"="+state))
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 9
}

// handOver starts a parent, and returns its life once that runs, and what lets the parent go on.
func handOver(t *testing.T, program, handed string) (k *kept, life int, execs func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k = &kept{t: t, cmd: exec.Command(self, "parent", program, handed)}
	in, err := k.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.start(&k.log)
	return k, k.life(), func() {
		t.Helper()
		if _, err := in.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
	}
}

// Its end is not lost: the kernel keeps it until somebody asks.
func TestALifeThatDiesDuringTheExecIsFollowedByTheNext(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k, life, execs := handOver(t, self, "1 PID PAGE -1 0 0 0 0 true 0")
	k.send(life, syscall.SIGKILL)
	execs()
	if why := k.line("before"); why != "it was killed by signal 9 (killed)" {
		t.Errorf("the former life: %q", why)
	}
	k.life()
	k.send(k.cmd.Process.Pid, syscall.SIGTERM)
	if code := k.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A life that leads is not left alone, and hands over.
func TestAKeeperThatCanNotReadWhatItIsHandedEndsItsLifeInOrder(t *testing.T) {
	for handed, want := range map[string]string{
		"2 PID PAGE -1 0 0 0 0 true 0": "signal terminated",
		"1 PID":                        "signal terminated",
		"1 PID x":                      "signal terminated",
		"1 PID 0 -1 0 0 0 0 true 0":    "signal terminated", // no page
		"1 PID 77 -1 0 0 0 0 true 0":   "signal terminated",
		"":                             "", // it is not known, and killed
		"1 1 PAGE -1 0 0 0 0 true 0":   "", // a stranger's process
	} {
		k, _, execs := handOver(t, "/nowhere", handed)
		execs()
		last := ""
		for k.lines.Scan() {
			last = k.lines.Text()
		}
		if code := k.code(); code != exitFailed || last != want {
			t.Errorf("%q: exit code %d, the life's last line is %q, want %q; log:\n%s", handed, code, last, want, &k.log)
		}
	}
}

func TestWhatAKeeperHandsOverComesBack(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	h := handed{pid: cmd.Process.Pid, page: 7, notify: -1, born: 1 << 60, at: 5, lives: lives{short: 2, failed: 1, ran: true, patience: 8}}
	t.Setenv(stateVariable, h.text())
	if got, err := takeOver(); err != nil || got != h {
		t.Errorf("%+v came back as %+v, %v", h, got, err)
	}
	if os.Getenv(stateVariable) != "" {
		t.Error("the next life would get it")
	}
	if got, err := takeOver(); err != nil || got.pid != 0 {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
}
