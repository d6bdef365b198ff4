package hook

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

const (
	// GuardWord is the first argument of a process that is to call Guard.
	GuardWord = "act-guard"
	// guardSocket is the descriptor on which a guard receives reports about runs.
	guardSocket = 3
	// maxReads bounds what a guard reads before it judges: more than its socket holds. A line
	// that does not end is dropped.
	maxReads = 1000
	maxWords = 1 << 16
)

// What a guard receives: lines, each of one of these words and its arguments.
const (
	wordRun   = "run"   // KEY PROCESS-GROUP UNTIL
	wordUntil = "until" // KEY UNTIL
	wordOver  = "over"  // KEY
)

// wordKilled is what a guard sends before it kills a run, with the argument KEY.
const wordKilled = "killed"

// never is later than every deadline.
const never = int64(math.MaxInt64)

// Guard is all that the process does which guards an agent's runs. The caller ends the process
// with the code returned. Guard kills the process group of a run at the run's deadline, an
// instant of CLOCK_BOOTTIME, unless the run's end or a later deadline is reported before. When
// the agent is gone, Guard kills all runs.
func Guard() int {
	a, err := alarm.New()
	if err == nil {
		for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGPIPE} {
			signal.Ignore(s) // what ends the agent must not end its guard, which starts no process
		}
		err = errors.New("only doyen act can start it")
		if unix.SetNonblock(guardSocket, true) == nil {
			g := &guarding{alarm: a, runs: map[uint64]*guarded{}}
			err = g.loop(os.NewFile(guardSocket, "agent"))
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "doyen: hook's guard: %v\n", err)
		return 1
	}
	return 0
}

// guarding is the state of a guard at work.
type guarding struct {
	alarm *alarm.Alarm
	agent syscall.RawConn
	rest  []byte // of a line that is not complete yet
	runs  map[uint64]*guarded
}

// guarded is one run in progress.
type guarded struct {
	group int
	pidfd int   // of the group's first process; -1: none
	until int64 // the deadline; never: the run was killed
}

// loop guards until the agent is gone. Reads of from do not block.
func (g *guarding) loop(from *os.File) (err error) {
	defer from.Close()
	if g.agent, err = from.SyscallConn(); err != nil {
		return fmt.Errorf("open the agent's socket: %w", err)
	}
	ready, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	go g.listen(ready, done)
	for {
		select {
		case <-ready:
		case <-g.alarm.C:
		}
		// The clock is read first: whatever was sent before a deadline must be known when the
		// deadline is judged, even if the guard got no processor time for long.
		now := alarm.Now()
		if !g.catchUp() {
			g.killAll(never)
			return nil
		}
		g.killAll(now)
		g.alarm.Set(g.next())
	}
}

// listen reports when there is something to read, or when the agent is gone.
func (g *guarding) listen(ready chan<- struct{}, done <-chan struct{}) {
	for {
		err := g.agent.Read(func(fd uintptr) bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return n != 0 || err != nil
		})
		if err != nil {
			return
		}
		select {
		case ready <- struct{}{}:
		case <-done:
			return
		}
	}
}

// catchUp reads all that the agent has sent. It returns false when the agent has ended.
func (g *guarding) catchUp() bool {
	buffer := make([]byte, 4096)
	for range maxReads {
		n, err := 0, error(nil)
		fault := g.agent.Control(func(fd uintptr) { n, _, err = unix.Recvfrom(int(fd), buffer, unix.MSG_DONTWAIT) })
		switch {
		case errors.Is(err, unix.EAGAIN):
			return true
		case errors.Is(err, unix.EINTR):
			continue
		case fault != nil || err != nil || n == 0:
			return false
		}
		lines := bytes.Split(append(g.rest, buffer[:n]...), []byte("\n"))
		for _, line := range lines[:len(lines)-1] {
			g.hear(string(line))
		}
		if g.rest = bytes.Clone(lines[len(lines)-1]); len(g.rest) > maxWords {
			g.rest = nil
		}
	}
	return true
}

// hear handles one line. It ignores a line that it can't read: a run that is not prolonged ends.
func (g *guarding) hear(line string) {
	words := strings.Fields(line)
	var numbers []int64
	for _, word := range words[min(1, len(words)):] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return
		}
		numbers = append(numbers, n)
	}
	switch {
	case len(numbers) == 3 && words[0] == wordRun && numbers[1] > 1:
		group := int(numbers[1])
		g.runs[uint64(numbers[0])] = &guarded{group: group, pidfd: hold(group), until: numbers[2]}
	case len(numbers) == 2 && words[0] == wordUntil:
		if r := g.runs[uint64(numbers[0])]; r != nil && r.until != never {
			r.until = numbers[1]
		}
	case len(numbers) == 1 && words[0] == wordOver:
		if r := g.runs[uint64(numbers[0])]; r != nil {
			release(r.pidfd)
			delete(g.runs, uint64(numbers[0]))
		}
	}
}

// killAll kills the runs whose deadline has passed.
func (g *guarding) killAll(now int64) {
	for key, r := range g.runs {
		if now < r.until {
			continue
		}
		r.until = never
		// If a run has ended by itself, its group's number may belong to another process, and what
		// it left behind goes on running. An agent that has ended can't report such an end.
		if now == never || there(r.pidfd) {
			g.confess(key)
			_ = syscall.Kill(-r.group, syscall.SIGKILL)
		}
	}
}

// confess reports to the agent that this guard kills the run, since nobody else can know that.
func (g *guarding) confess(key uint64) {
	line := fmt.Appendf(nil, "%s %d\n", wordKilled, key)
	_ = g.agent.Control(func(fd uintptr) { _, _ = unix.SendmsgN(int(fd), line, nil, nil, unix.MSG_DONTWAIT) })
}

func (g *guarding) next() int64 {
	next := never
	for _, r := range g.runs {
		next = min(next, r.until)
	}
	return next
}
