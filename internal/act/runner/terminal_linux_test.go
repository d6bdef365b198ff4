package runner_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns a terminal, and the side of its screen and keyboard.
func openTerminal(t *testing.T) (terminal, keyboard *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	raw, err := keyboard.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil || failed != nil {
		t.Skipf("no pseudo-terminals here: %v, %v", err, failed)
	}
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return terminal, keyboard
}

func typed(t *testing.T, keyboard *os.File, text string) {
	t.Helper()
	if _, err := keyboard.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestTheCommandReadsFromTheTerminalAndEndsWithIt(t *testing.T) {
	t.Parallel()
	terminal, keyboard := openTerminal(t)
	r := startAt(t, config{}, `echo up >&9; read line; echo got $line >&9; sleep 1000 & wait`, terminal)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.word("up")
	typed(t, keyboard, "hello\n")
	r.word("got hello")
	terminal.Close()
	keyboard.Close() // closes the terminal's window
	wait(t, "death", r.death)
	wait(t, "receipt", stood.Receipts())
	r.status(0)
}

func TestCtrlCEndsTheCommandOnceAndThenTheRunner(t *testing.T) {
	t.Parallel()
	terminal, keyboard := openTerminal(t)
	r := startAt(t, config{}, `trap 'echo asked >&9' INT TERM; echo up >&9; read line; read line; echo done >&9`, terminal)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.word("up")
	typed(t, keyboard, "\x03")
	r.word("asked")
	typed(t, keyboard, "a\nb\n") // after a trap, a shell continues to read
	r.word("done")
	wait(t, "receipt", stood.Receipts())
	r.status(0)
}

// After the terminal is closed, a signal that only the runner gets must still end the command.
func TestAnInterruptThatTheTerminalDidNotSendEndsTheCommandToo(t *testing.T) {
	t.Parallel()
	terminal, _ := openTerminal(t)
	r := startAt(t, config{Grace: 20 * time.Millisecond}, `echo up >&9; exec sleep 1000`, terminal)
	r.agent.Stood().Elect(1, long)
	r.word("up")
	r.signal(r.cmd.Process.Pid, syscall.SIGINT)
	wait(t, "death", r.death)
	r.status(0)
}
