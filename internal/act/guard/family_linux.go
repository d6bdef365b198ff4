package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of every descendant whose parent dies.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	return nil
}

// attributes has the kernel kill the command when the thread that started it ends, and puts
// the command into the process group, or into a new one if group is 0.
func attributes(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL}
}

// ownProgram is the program file of this process, even if another file has its name by now.
func ownProgram() (string, error) {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err != nil { // there is no /proc
		return os.Executable()
	}
	return link, nil
}

// children lists the children of a process, zombies included.
func children(pid int) []int {
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil || len(lists) == 0 {
		return scanChildren(pid)
	}
	var found []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread is gone
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// scanChildren is children for a kernel without lists of children (CONFIG_PROC_CHILDREN).
func scanChildren(pid int) []int {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var found []int
	for _, path := range stats {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if parent, ok := ParentOf(child); ok && parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// ParentOf returns false if the process is gone.
func ParentOf(pid int) (parent int, ok bool) {
	of, ok := look(pid)
	return of.parent, ok
}

// seen is a process as the kernel shows it. Its start is in ticks since the host's.
type seen struct {
	parent, session int
	start           uint64
	zombie          bool
}

// look returns false if the process is gone.
func look(pid int) (s seen, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, false
	}
	// The name, in brackets, may hold anything; state, parent, group, session follow it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return s, false
	}
	var wrong [3]error
	s.zombie = fields[0] == "Z"
	s.parent, wrong[0] = strconv.Atoi(fields[1])
	s.session, wrong[1] = strconv.Atoi(fields[3])
	s.start, wrong[2] = strconv.ParseUint(fields[19], 10, 64)
	return s, errors.Join(wrong[:]...) == nil
}
