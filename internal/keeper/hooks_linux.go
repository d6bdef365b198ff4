package keeper

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
)

// endWord: see package hook, which needs too much memory for a keeper.
const endWord = "hook-end"

// endHooks runs hooks with `none`, in a process of this program, in the elections in which one ran
// with `leading`. Where that is not known, they are those for which an agent runs its hook when it
// starts. It returns when the runs have ended; each has its limit.
func endHooks(known Known, past *record.Past) error {
	var input strings.Builder
	add := func(name election.Name, term election.Term) {
		if command := known.hook(name); command != "" {
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
	if input.Len() == 0 {
		return nil
	}
	// A signal to this process's group must not end it, but the end of this process must: the next
	// one may lead on. The thread that starts it stays until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{os.Args[0], endWord, known.log}, Stdin: strings.NewReader(input.String()), Stderr: os.Stderr}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run hooks: %w", err)
	}
	return nil
}
