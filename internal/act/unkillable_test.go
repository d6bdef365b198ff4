package act_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/hook"
	"github.com/doyen-election/doyen/testbed/executable"
)

// The kinds of process that this test binary can be, named by its first argument. The second argument is a
// command, or a path.
const (
	asRoot  = "as-root"  // becomes root, if the file's mode allows that, and writes its process number to the named pipe
	asHook  = "as-hook"  // runs the command as a hook, and prints when the receipt is due
	asCheck = "as-check" // runs the command as a check, and prints the verdicts
)

// stayAsRoot is a process that only root can kill. It ends when nobody reads the pipe any more.
func stayAsRoot(pipe string) {
	if err := syscall.Setuid(0); err != nil {
		panic(err)
	}
	to, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	for again := time.Tick(100 * time.Millisecond); err == nil; <-again {
		_, err = fmt.Fprintln(to, os.Getpid())
	}
}

// runOne runs a command until standard input ends.
func runOne(kind, command string) {
	logger := slog.New(slog.NewTextHandler(os.Stdout, nil))
	pool := guard.NewPool(os.Environ(), guard.Nice(), "test", logger)
	if kind == asHook {
		hook.New(hook.Commands{Default: command, Limit: time.Second}, pool, logger).Enqueue(hook.Event{
			Election: "default", Event: election.Leading, Term: 1, Done: func() { fmt.Println("receipt") }})
	} else {
		health.New(context.Background(), pool, func(string) error { return nil }, func(election.Name) bool { return false },
			func(_ election.Name, _ func() bool, unhealthy string) { fmt.Println("verdict", unhealthy) }, logger,
		).Set(map[election.Name]health.Check{health.Host: {Command: command, Every: time.Hour, Timeout: time.Second}}, func(election.Name) bool { return false })
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// unkillable runs a command that becomes root, so that its guard can't kill it. It returns the printed lines,
// and a function that kills it.
func unkillable(t *testing.T, kind string) (said <-chan string, end func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, which CI is: to run something that another user can't kill")
	}
	dir, err := os.MkdirTemp("", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"": 0o755, "doyen": 0o755, "command": 0o755 | os.ModeSetuid} {
		path := filepath.Join(dir, name)
		if name != "" {
			if err := executable.Write(path, program); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	pipe := filepath.Join(dir, "pid")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(filepath.Join(dir, "doyen"), kind, strings.Join([]string{filepath.Join(dir, "command"), asRoot, pipe}, " "))
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if _, err := c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines, pid := make(chan string, 100), make(chan int, 1)
	go func() {
		for read := bufio.NewScanner(out); read.Scan(); {
			lines <- read.Text()
		}
	}()
	go func() {
		from, err := os.Open(pipe)
		if err != nil {
			return
		}
		defer from.Close()
		for read := bufio.NewScanner(from); read.Scan(); {
			n, _ := strconv.Atoi(read.Text())
			select {
			case pid <- n:
			default:
			}
		}
	}()
	command := take(t, "command that runs as root", pid)
	if command <= 1 {
		t.Fatal("the command has not said its number")
	}
	end = func() { _ = syscall.Kill(command, syscall.SIGKILL) }
	t.Cleanup(func() {
		end()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return lines, end
}

// until waits for a line with the text. It fails if a line with the text `before` comes first.
func until(t *testing.T, said <-chan string, text, before string) {
	t.Helper()
	for {
		line := take(t, text, said)
		if strings.Contains(line, text) {
			return
		}
		if strings.Contains(line, before) {
			t.Fatalf("%q comes before %q", line, text)
		}
	}
}

func TestTheReceiptForARunThatCannotBeKilledIsWithheld(t *testing.T) {
	t.Parallel()
	said, end := unkillable(t, asHook)
	until(t, said, "a process can't be killed", "receipt")
	for quiet := time.After(3 * time.Second); ; { // longer than the wait for the output
		select {
		case line := <-said:
			if strings.Contains(line, "receipt") {
				t.Fatal("the receipt is given while the run goes on")
			}
			continue
		case <-quiet:
		}
		break
	}
	end()
	until(t, said, "receipt", "nothing else")
}

// The check waits for the process, but not for ever.
func TestACheckThatCannotBeKilledFails(t *testing.T) {
	t.Parallel()
	said, _ := unkillable(t, asCheck)
	until(t, said, "check failed: it did not end within 1s, nor when it was killed", "check failed")
}
