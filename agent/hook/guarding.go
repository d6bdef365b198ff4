package hook

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/client/alarm"
)

const (
	// GuardWord is the first argument of a process that is to call Guard.
	GuardWord = "hook-guard"
	// guardSocket is the descriptor on which a guard hears of runs.
	guardSocket = 3
)

// What a guard hears: a line of words for each thing.
const (
	wordRun   = "run"   // KEY PROCESS-GROUP UNTIL
	wordUntil = "until" // KEY UNTIL
	wordOver  = "over"  // KEY
)

// never is after every deadline.
const never = int64(math.MaxInt64)

// Guard is the whole life of the process that guards an agent's runs: the caller
// ends the process with what it returns. It kills the process group of a run at
// that run's deadline, an instant of CLOCK_BOOTTIME, unless it hears of its end
// or of a later deadline before; and all of them when the agent is gone.
func Guard() int {
	a, err := alarm.New()
	if err == nil {
		for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGPIPE} {
			signal.Ignore(s) // what ends the agent must not end its guard; it starts no process
		}
		g := &guarding{alarm: a, runs: map[uint64]*guarded{}}
		err = g.loop(os.NewFile(guardSocket, "agent"))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "doyen: hook's guard: %v\n", err)
		return 1
	}
	return 0
}

// guarding is a guard at work.
type guarding struct {
	alarm *alarm.Alarm
	runs  map[uint64]*guarded
}

// guarded is one run that is under way.
type guarded struct {
	group int
	pidfd int   // of the group's first process; -1: none
	until int64 // never once it is killed
}

func (g *guarding) loop(from io.ReadCloser) error {
	defer from.Close()
	if _, err := unix.FcntlInt(guardSocket, unix.F_GETFD, 0); err != nil {
		return errors.New("it is started by doyen agent alone")
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(from); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	for {
		select {
		case line, more := <-lines:
			if !more {
				g.killAll(never)
				return nil
			}
			g.hear(line)
		case <-g.alarm.C:
		}
		g.killAll(alarm.Now())
		g.alarm.Set(g.next())
	}
}

// hear takes one line. What it can't read it leaves out: a run that is not
// prolonged ends.
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

// killAll kills the runs whose deadline has passed by then.
func (g *guarding) killAll(now int64) {
	for _, r := range g.runs {
		if now < r.until {
			continue
		}
		r.until = never
		// What a run left behind when it ended by itself is not ended, and its number
		// may be another's. An agent that is gone can't have said so.
		if now == never || there(r.pidfd) {
			_ = syscall.Kill(-r.group, syscall.SIGKILL)
		}
	}
}

func (g *guarding) next() int64 {
	next := never
	for _, r := range g.runs {
		next = min(next, r.until)
	}
	return next
}
