package keeper

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/testbed/executable"
)

// This test binary also plays the keeper, by the package's init, and the life.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "life":
			os.Exit(life(os.Args[2:]))
		case "act":
			asked := make(chan os.Signal, 1)
			signal.Notify(asked, syscall.SIGTERM)
			fmt.Println("acts", os.Args[2:])
			<-asked
			_, err := os.Lstat(os.Getenv("RECORD"))
			fmt.Println("ends while there is a record:", err == nil)
			os.Exit(0)
		}
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests wait for deadlines, not for processors
		panic(err)
	}
	os.Exit(m.Run())
}

// life plays a life: it prints its process, and does what its first argument names.
func life(args []string) int {
	if last := args[len(args)-1]; last == "json" { // a trial
		fmt.Println("warning\n", args, "page", os.Getenv(pageVariable), "notify", os.Getenv(notifyVariable))
		if args[0] == "refuse" {
			fmt.Fprint(os.Stderr, "doyen: ", strings.Repeat("x", maxTried))
			return 78
		}
		return 0
	}
	if args[0] == "slow" {
		<-time.After(1300 * time.Millisecond)
	}
	if args[0] == "late" {
		fmt.Println("begun", os.Getpid())
		<-time.After(400 * time.Millisecond)
	}
	if args[0] == "capable" {
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) // as the kernel does for a file with capabilities
	}
	kept := Attach()
	if args[0] == "slower" {
		<-time.After(1300 * time.Millisecond)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGHUP)
	if args[0] == "fail" {
		return 3
	}
	kept.Begins(alarm.Now())
	fmt.Println("before", kept.Why())
	kept.Tells(Known{Peer: "peer"})
	kept.Runs(200*time.Millisecond, 2*time.Second) // it hangs when 600 ms late, and even a busy machine is not as late
	kept.Ticks(alarm.Now(), alarm.Now())
	fmt.Println("life", os.Getpid())
	switch args[0] {
	case "slow", "slower":
		<-time.After(time.Hour) // not SIGSTOP, which would notify the parent
	case "try", "refuse":
		for range 2 {
			printed, err := kept.Try(context.Background())
			fmt.Printf("trial %v, %d bytes: %.80q\n", err, len(printed), printed)
		}
	case "acting":
		kept.Tells(Known{Peer: "peer-a", Record: args[1], Pages: args[2], Act: true})
		go ticks(kept)
		fmt.Println("signal", <-asked)
		return exitConfig
	case "confined":
		confined(kept)
	case "hostile":
		fmt.Println("tries", kept.page.trial.can.Load(), kept.page.trial.done.Load())
		kept.page.tell(args[1] + "\x00" + args[2] + "\x00peer-a\x00" + args[3] + "\x01fake\x01act\x01hostile")
		kept.page.trial.can.Store(false)
		kept.page.trial.done.Store(1)
		kept.page.magic = 1
		_ = unix.Ftruncate(pageAt+1, 0)
		go ticks(kept)
		fmt.Println("signal", <-asked)
		if kept.Why() != "" {
			return exitConfig
		}
		return 3
	case "exit":
		code, _ := strconv.Atoi(args[1])
		return code
	case "notify":
		to, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
		if err != nil {
			fmt.Println("notify", err)
			return 1
		}
		fmt.Fprint(to, "READY=1\nMAINPID=1\rMAINPID=2\nMAINPIDFD=1\nFDSTORE=1")
		fmt.Println("socket", os.Getenv("NOTIFY_SOCKET"))
		go ticks(kept)
		<-asked
		fmt.Fprint(to, "STATUS=later")
	}
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case s := <-asked:
			fmt.Println("signal", s)
			if s == syscall.SIGHUP {
				if to, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET")); err == nil {
					fmt.Fprint(to, "STATUS=reloaded")
				}
				continue
			}
			if s != syscall.SIGUSR1 {
				kept.Stops()
				return 0
			}
			kept.Restarts()
			return 0
		case <-tick.C:
			now := alarm.Now()
			kept.Ticks(now, now+int64(10*time.Millisecond))
		}
	}
}

// ticks makes a life tick while it waits for a signal, so that it is not killed.
func ticks(kept *Life) {
	for range time.Tick(10 * time.Millisecond) {
		now := alarm.Now()
		kept.Ticks(now, now+int64(10*time.Millisecond))
	}
}

// kept is a keeper under test.
type kept struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	read  bytes.Buffer // the lines read so far
	log   bytes.Buffer // to be read after the keeper's end
}

func keep(t *testing.T, env []string, args ...string) *kept {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return keepProgram(t, self, env, args...)
}

func keepProgram(t *testing.T, program string, env []string, args ...string) *kept {
	t.Helper()
	return keepAs(t, nil, program, env, args...)
}

func keepAs(t *testing.T, as *syscall.SysProcAttr, program string, env []string, args ...string) *kept {
	t.Helper()
	return keepGiven(t, as, Given{Program: program}, env, args...)
}

func keepGiven(t *testing.T, as *syscall.SysProcAttr, g Given, env []string, args ...string) *kept {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	g.LogFormat, g.LogLevel, g.Act, g.Args = "json", "info", []string{"given"}, append([]string{"fake", "life"}, args...)
	k := &kept{t: t, cmd: exec.Command(self, append([]string{Word}, g.words()...)...)}
	k.cmd.Env, k.cmd.SysProcAttr, k.cmd.Stderr = append(append(os.Environ(), "GORACE=atexit_sleep_ms=10"), env...), as, &k.log
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.lines = bufio.NewScanner(io.TeeReader(out, &k.read))
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(time.Minute, func() { _ = k.cmd.Process.Kill() })
	t.Cleanup(func() {
		stuck.Stop()
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
		if t.Failed() {
			t.Logf("it wrote:\n%s\nlog:\n%s", &k.read, &k.log)
		}
	})
	return k
}

// line waits for the next line that begins with the word, and returns the rest of that line.
func (k *kept) line(word string) string {
	k.t.Helper()
	for k.lines.Scan() {
		if rest, ok := strings.CutPrefix(k.lines.Text(), word+" "); ok {
			return rest
		}
	}
	k.t.Fatalf("it ended before a line with %q", word)
	return ""
}

func (k *kept) life() int {
	k.t.Helper()
	pid, err := strconv.Atoi(k.line("life"))
	if err != nil {
		k.t.Fatal(err)
	}
	return pid
}

// code waits for the keeper's end, and returns its exit code.
func (k *kept) code() int {
	for k.lines.Scan() {
	}
	_ = k.cmd.Wait() // the code shows the outcome
	return exitCode(k.cmd.ProcessState.Sys().(syscall.WaitStatus))
}

func (k *kept) send(pid int, s syscall.Signal) {
	k.t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		k.t.Fatal(err)
	}
}

func TestALifeThatIsKilledOrHangsIsFollowedByTheNext(t *testing.T) {
	t.Parallel()
	k := keep(t, nil, "run")
	first := k.life()
	k.send(first, syscall.SIGKILL)
	second := k.life()
	k.send(second, syscall.SIGSTOP)
	if third := k.life(); third == second || second == first {
		t.Errorf("lives %d, %d and %d", first, second, third)
	}
	if err := syscall.Kill(second, 0); err != syscall.ESRCH {
		t.Errorf("the one that hung: %v, want that it is gone", err)
	}
	k.send(k.cmd.Process.Pid, syscall.SIGTERM)
	if s := k.line("signal"); s != "terminated" {
		t.Errorf("the life got %s", s)
	}
	if code := k.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// On a busy host, a life may reach its main function late. From then on it is watched. A life that may only
// have been slow gets more time at its next start.
func TestALifeThatStartedSlowlyIsKilledWhenItHangs(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"slow", "slower"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			k := keep(t, nil, how)
			if first, second := k.life(), k.life(); second == first {
				t.Error("the same life")
			}
		})
	}
}

func TestARestartStartsTheProgramFileAsItIsThen(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link, other := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "other")
	for _, l := range []string{link, other} {
		if err := os.Symlink(self, l); err != nil {
			t.Fatal(err)
		}
	}
	k := keepProgram(t, link, nil, "run")
	first := k.life()
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nwhile [ -L " + other + " ]; do sleep 0.01; done; exit 1" // a version that never runs
	if err := executable.Write(link, []byte(script)); err != nil {
		t.Fatal(err)
	}
	k.send(first, syscall.SIGUSR1)
	if s := k.line("signal"); s != "user defined signal 1" {
		t.Errorf("the life got %s", s)
	}
	if err := os.Rename(other, link); err != nil { // repaired
		t.Fatal(err)
	}
	if k.life() == first {
		t.Error("the same life")
	}
}

func TestCodesThatOnlyAnOperatorCanChangeEndTheKeeper(t *testing.T) {
	for _, code := range []int{64, 78} {
		if got := keep(t, nil, "exit", strconv.Itoa(code)).code(); got != code {
			t.Errorf("a life ended with %d, its keeper with %d", code, got)
		}
	}
	if got := keep(t, nil, "fail").code(); got != 3 {
		t.Errorf("a first life that never ran ended with 3, its keeper with %d", got)
	}
}

func TestNoLifeOutlivesItsKeeper(t *testing.T) {
	for _, what := range []string{"run", "capable"} {
		k := keep(t, nil, what)
		k.life()
		k.send(k.cmd.Process.Pid, syscall.SIGKILL)
		for k.lines.Scan() { // until no process holds the other end of the pipe
		}
		if err := k.lines.Err(); err != nil {
			t.Error(err)
		}
	}
}

func TestASecondSignalEndsWithoutWaiting(t *testing.T) {
	t.Parallel()
	k := keep(t, nil, "run")
	life := k.life()
	k.send(life, syscall.SIGSTOP) // a stopped life can't answer the first signal
	k.send(k.cmd.Process.Pid, syscall.SIGTERM)
	<-time.After(2 * sameRequest) // the second signal is a second request
	k.send(k.cmd.Process.Pid, syscall.SIGINT)
	if code := k.code(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("exit code %d", code)
	}
}

// Under nohup, SIGHUP is ignored at the start.
func TestAHangupIsPassedOnAndEndsNothing(t *testing.T) {
	for _, nohup := range []bool{false, true} {
		if nohup {
			signal.Ignore(syscall.SIGHUP)
			defer signal.Reset(syscall.SIGHUP)
		}
		k := keep(t, nil, "run")
		k.life()
		for range 3 {
			k.send(k.cmd.Process.Pid, syscall.SIGHUP)
			if got := k.line("signal"); got != "hangup" {
				t.Fatalf("the life got %q", got)
			}
		}
		k.send(k.cmd.Process.Pid, syscall.SIGTERM)
		if code := k.code(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}
