package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// cgroup is a control group that holds the command and nothing else. The kernel
// kills all of one at once, whatever its processes do meanwhile: a fork bomb can
// be outrun. It is a help, and nothing rests on it.
type cgroup struct {
	dir  string
	file *os.File // dir; nil: there is no such group
}

// newCgroup makes a group below this process's own, where that has been left to
// this process: it is a delegated one (systemd's Delegate=, a user's session),
// or the root that this process sees. Of another one systemd is the master, and
// is not interfered with. The group is named by the guard, so that the runner
// finds it when the guard is gone.
func newCgroup(guard int) *cgroup {
	own := ownCgroup()
	if own == "" {
		return &cgroup{}
	}
	sweep(own)
	dir := filepath.Join(own, cgroupPrefix+strconv.Itoa(guard))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return &cgroup{}
	}
	file, err := os.Open(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "cgroup.kill")) // since Linux 5.14
	}
	if err != nil {
		_ = unix.Rmdir(dir)
		return &cgroup{}
	}
	return &cgroup{dir: dir, file: file}
}

// cgroupPrefix precedes the guard's process number in the name of its group.
const cgroupPrefix = "doyen-run-"

// sweep removes the groups of guards that were killed together with their
// runners. One that holds a process can't be removed.
func sweep(own string) {
	dirs, _ := filepath.Glob(filepath.Join(own, cgroupPrefix+"*")) // of a pattern that is valid
	for _, dir := range dirs {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), cgroupPrefix))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = unix.Rmdir(dir)
		}
	}
}

// ownCgroup returns the directory of this process's group in the second version
// of control groups, empty if there is none that it may divide.
func ownCgroup() string {
	memberships, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(memberships)) {
		path, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !found || strings.Contains(path, "..") { // outside of what this process sees
			continue
		}
		dir := filepath.Join(cgroupMount(), path)
		if dir == path || path != "/" && !delegated(dir) || unix.Access(dir, unix.W_OK) != nil {
			return ""
		}
		return dir
	}
	return ""
}

// cgroupMount returns where the second version is mounted from its root.
func cgroupMount() string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(mounts)) {
		place, kind, found := strings.Cut(line, " - ")
		fields := strings.Fields(place)
		if found && strings.HasPrefix(kind, "cgroup2 ") && len(fields) > 4 && fields[3] == "/" {
			return fields[4]
		}
	}
	return ""
}

// delegated asks for the mark that systemd leaves.
func delegated(dir string) bool {
	for _, mark := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, mark, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// hold has the process that is to be started begin its life in the group, if
// there is one.
func (c *cgroup) hold(sys *syscall.SysProcAttr) bool {
	if c.file == nil {
		return false
	}
	sys.UseCgroupFD, sys.CgroupFD = true, int(c.file.Fd())
	return true
}

// kill kills all that is in it. The group is of no use after that: Linux 6.18,
// for one, then kills whatever begins its life there.
func (c *cgroup) kill() {
	if c.file != nil {
		_ = os.WriteFile(filepath.Join(c.dir, "cgroup.kill"), []byte("1"), 0) // the children are killed one by one as well
	}
}

// drop does without the group from now on, and removes it.
func (c *cgroup) drop() {
	if c.file != nil {
		c.file.Close()
		_ = unix.Rmdir(c.dir)
		c.file = nil
	}
}

// abandonedCgroup is the group of a guard that is gone.
func abandonedCgroup(guard int) *cgroup {
	own := ownCgroup()
	if own == "" {
		return &cgroup{}
	}
	dir := filepath.Join(own, cgroupPrefix+strconv.Itoa(guard))
	file, err := os.Open(dir)
	if err != nil {
		return &cgroup{}
	}
	return &cgroup{dir: dir, file: file}
}
