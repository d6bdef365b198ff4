package guard

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/internal/base/wrap"
	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of every descendant whose parent dies.
func Adopt() error {
	return wrap.Error(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "become a subreaper")
}

// attributes makes the kernel kill the command when the thread that started it ends. The
// command joins the process group; group 0 makes a new one.
func attributes(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL}
}

// ownProgram returns the program file of this process, even if another file has its name by now.
func ownProgram() (string, error) {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err != nil { // this system has no /proc
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
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// scanChildren does what children does, for a kernel without lists of children (CONFIG_PROC_CHILDREN).
func scanChildren(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	var found []int
	for _, path := range stats {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if parent, ok := ParentOf(child); err == nil && ok && parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// ParentOf returns the parent of a process; false: the process has ended.
func ParentOf(pid int) (parent int, ok bool) {
	of, ok := look(pid)
	return of.parent, ok
}

// seen is a process as the kernel shows it. start is in ticks after the start of the host.
type seen struct {
	parent, session int
	start           uint64
	zombie          bool
}

// look returns what the kernel shows of a process; false: the process has ended.
func look(pid int) (s seen, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, false
	}
	// The name, in brackets, may have any bytes. After it come state, parent, group and session.
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
