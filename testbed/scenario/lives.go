package scenario

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// installCommand: install HOST… former|present. It sets the binary for the next start.
func installCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if err := w.ready(); err != nil {
		return "", err
	}
	n := len(args) - 1
	binary := w.o.Binary
	switch args[n] {
	case "present":
	case "former":
		if w.former.Path == "" {
			var err error
			if w.former, err = hosts.BuildFormer(w.ctx, w.lab.Cluster.Dir()); err != nil {
				return "", err
			}
		}
		binary = w.former
	default:
		return "", fmt.Errorf("%q: want former or present", args[n])
	}
	targets, err := w.hostsOf(args[:n])
	if err != nil {
		return "", err
	}
	return "", w.begin(hosts.Install(binary, args[n]), targets...)
}

// lifeCommand makes a command that sends a signal to the newest life of agents with a keeper.
func lifeCommand(what string, s syscall.Signal) command {
	return forHosts(func(w *world, targets []*hosts.Host) error {
		for _, h := range targets {
			pid, err := lab.Life(w.ctx, h)
			if err != nil {
				return err
			}
			if pid == h.PID() {
				return fmt.Errorf("%s %s: it has no keeper: set %s keeper=true", what, h.Name(), h.Name())
			}
			if w.acted, err = w.lab.Strike(what, h, pid, s); err != nil {
				return err
			}
		}
		return nil
	})
}

func recordOf(h *hosts.Host) string {
	c := h.Config()
	return record.Path(c.RecordDir, c.Socket, c.Name)
}

// loseRecords: lose-record HOST…. The next lives of their agents find no record.
func loseRecords(w *world, targets []*hosts.Host) error {
	for _, h := range targets {
		w.acted = boottime.Now()
		if err := os.Remove(recordOf(h)); err != nil {
			return err
		}
		w.lab.Note(observe.Fault{What: "lose-record", Where: []string{h.Name()}, From: w.acted, To: w.acted})
	}
	return nil
}

// swapRecords: swap-records HOST HOST. Each host gets the record of the other.
func swapRecords(w *world, targets []*hosts.Host) error {
	if len(targets) != 2 {
		return errors.New("want two hosts")
	}
	one, two := recordOf(targets[0]), recordOf(targets[1])
	w.acted = boottime.Now()
	return errors.Join(os.Rename(one, one+".aside"), os.Rename(two, one), os.Rename(one+".aside", two))
}

// pauseQuantity: pause PROGRAM LIMIT. It is the longest time since the mark in which the
// program did not act, by its own stamps.
func pauseQuantity(w *world, _, name string) (float64, string, error) {
	if _, ok := w.lab.Program(name); !ok {
		return 0, "", fmt.Errorf("there is no program %q", name)
	}
	now := boottime.Now()
	spans, err := w.lab.Spans()
	if err != nil {
		return 0, "", err
	}
	spans = slices.DeleteFunc(spans, func(s observe.ProgramSpan) bool { return s.Program != name })
	longest, at := observe.Pause(spans, w.marked, now)
	saw := "it acted all the time"
	if longest > 0 {
		saw = fmt.Sprintf("it did not act for %s, %s after the mark", longest.Round(10*time.Microsecond), at.Sub(w.marked).Round(time.Millisecond))
	}
	return float64(longest), saw, nil
}
