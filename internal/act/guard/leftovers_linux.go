package guard

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// mark names a run in the environment of its processes: by this process, its session, a number
// and whose it is.
func mark(owner string, run uint64) string {
	self, ok := look(os.Getpid())
	if owner == "" || !ok {
		return ""
	}
	return fmt.Sprintf("%d %d %d %d %s", os.Getpid(), self.start, self.session, run, owner)
}

// endMarked kills what is left of a run whose guard has ended, and what descends from it.
func endMarked(mark string) {
	if mark != "" {
		end(func(of string, _ seen) bool { return of == mark })
	}
}

// EndLeftovers kills what a process like this one, of the same owner, had under way when it was
// killed together with its guards, and returns how many processes these were. A process that has
// a session of its own is spared: a run that has ended may have left it.
func EndLeftovers(owner string) int {
	return end(func(of string, s seen) bool {
		words := strings.SplitN(of, " ", 5) // see mark
		if len(words) < 5 || words[4] != owner || words[2] != strconv.Itoa(s.session) {
			return false
		}
		pid, err := strconv.Atoi(words[0])
		by, there := look(pid)
		return err == nil && !(there && strconv.FormatUint(by.start, 10) == words[1])
	})
}

// endLimit bounds how long end takes.
const endLimit = time.Second

// end kills the processes whose mark fits, until none is left.
func end(fits func(mark string, s seen) bool) (found int) {
	for began := time.Now(); time.Since(began) < endLimit; {
		left := 0
		dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
		for _, dir := range dirs {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if pid != os.Getpid() && endOne(pid, fits) {
				left++
			}
		}
		if found = max(found, left); left == 0 {
			break
		}
		timer := time.NewTimer(Again)
		<-timer.C
	}
	return found
}

// endOne kills a process if its mark fits. The descriptor is taken first, so that what is killed is
// what was looked at.
func endOne(pid int, fits func(mark string, s seen) bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	s, ok := look(pid)
	if err != nil || !ok || s.zombie {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if of, found := bytes.CutPrefix(entry, []byte(markVariable+"=")); found && fits(string(of), s) {
			return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
		}
	}
	return false
}
