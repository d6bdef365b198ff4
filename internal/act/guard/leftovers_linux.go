package guard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// mark returns the text that identifies a run in the environment of its processes: this process,
// its session, the run's number and its owner.
func mark(owner string, run uint64) string {
	self, ok := look(os.Getpid())
	if owner == "" || !ok {
		return ""
	}
	return fmt.Sprintf("%d %d %d %d %s", os.Getpid(), self.start, self.session, run, owner)
}

// endMarked kills all processes of a run, descendants included, after its guard has ended. It returns once none
// is left.
func endMarked(mark string, logger *slog.Logger) {
	if mark != "" {
		end(context.Background(), logger, func(of string, _ seen) bool { return of == mark })
	}
}

// EndLeftovers kills the processes that an earlier process with the same owner left behind when it was killed
// together with its guards. Once none is left or ctx ends, it returns how many there were. It spares processes
// in another session: a run that ended normally may have left them.
func EndLeftovers(ctx context.Context, owner string, logger *slog.Logger) int {
	return end(ctx, logger, func(of string, s seen) bool {
		words := strings.SplitN(of, " ", 5) // the parts of a mark, in the order that mark writes
		if len(words) < 5 || words[4] != owner || words[2] != strconv.Itoa(s.session) {
			return false
		}
		pid, err := strconv.Atoi(words[0])
		by, there := look(pid)
		return err == nil && !(there && strconv.FormatUint(by.start, 10) == words[1])
	})
}

// end kills the processes whose mark fits. Once none is left or ctx ends, it returns how many there
// were.
func end(ctx context.Context, logger *slog.Logger, fits func(mark string, s seen) bool) (found int) {
	again := Again
	for began := time.Now(); ; {
		var left []int
		var err error
		dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
		for _, dir := range dirs {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if pid == os.Getpid() {
				continue
			}
			if fault := endOne(pid, fits); !errors.Is(fault, os.ErrProcessDone) {
				left, err = append(left, pid), cmp.Or(fault, err)
			}
		}
		if found = max(found, len(left)); len(left) == 0 {
			return found
		}
		if again == Again && time.Since(began) > StuckAfter {
			again = StuckAfter
			logger.Error(Blocked(err)+"; its guard has ended, and nothing follows its run, not even a receipt, before it is gone: end it as root, or repair what it waits for", "pids", left)
		}
		select {
		case <-ctx.Done():
			return found
		case <-time.After(again):
		}
	}
}

// endOne kills a process if its mark fits, else it returns os.ErrProcessDone. It opens a descriptor
// of the process first, so that it kills the process that it has checked.
func endOne(pid int, fits func(mark string, s seen) bool) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return os.ErrProcessDone
	}
	defer process.Release()
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	s, ok := look(pid)
	if err != nil || !ok || s.zombie {
		return os.ErrProcessDone
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if of, found := bytes.CutPrefix(entry, []byte(markVariable+"=")); found && fits(string(of), s) {
			return process.Kill()
		}
	}
	return os.ErrProcessDone
}
