package keeper

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
)

// endWord, wordEnded: see package hook, which needs too much memory for a keeper.
const (
	endWord   = "hook-end"
	wordEnded = "ended"
)

// endings are the runs of hooks with `none`, in the elections in which one ran with `leading`.
type endings struct {
	running map[election.Name]bool
	results chan ending
	done    chan struct{}
}

type ending struct {
	of     election.Name
	failed bool
}

// endHooks starts the runs, in a process of this program. Without a record, nobody knows what
// ran: then the elections are those for which an agent runs its hook when it starts.
func endHooks(known Known, past *record.Past, logger *slog.Logger) *endings {
	e := &endings{running: map[election.Name]bool{}, done: make(chan struct{})}
	var input strings.Builder
	add := func(name election.Name, term election.Term) {
		if command := known.hook(name); command != "" {
			e.running[name] = true
			fmt.Fprintf(&input, "%s\x00%d\x00%s\x00", name, term, command)
		}
	}
	if past != nil {
		for _, row := range past.Rows {
			if past.Actors[row.Election].Hook.Term != 0 {
				add(row.Election, row.Term)
			}
		}
	} else {
		for name := range known.Hooks {
			if name != everyOther {
				add(name, 0)
			}
		}
	}
	e.results = make(chan ending, len(e.running))
	if len(e.running) == 0 {
		close(e.done)
		return e
	}
	go func() {
		defer close(e.done)
		if err := e.run(known.log, input.String()); err != nil {
			logger.Warn("hooks can't be run", "err", err)
		}
	}()
	return e
}

// run runs the process, and passes on what it reports. What it does not report has failed.
func (e *endings) run(log, input string) error {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{os.Args[0], endWord, log}, Stdin: strings.NewReader(input), Stderr: os.Stderr}
	// A signal to this process's group must not end it, but the end of this process must: the next
	// one may lead on. The thread that starts it stays until then.
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	left := map[election.Name]bool{}
	for name := range e.running {
		left[name] = true
	}
	defer func() {
		for name := range left {
			e.results <- ending{name, true}
		}
	}()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, name, _ := strings.Cut(lines.Text(), " ")
		if of := election.Name(name); left[of] {
			delete(left, of)
			e.results <- ending{of, word != wordEnded}
		}
	}
	return cmd.Wait()
}

// close waits for the runs. Each has its limit.
func (e *endings) close() { <-e.done }
