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

// cgroup is a control group that holds the command and nothing else. The kernel kills a
// whole group at once, whatever its processes do meanwhile, even a fork bomb. The group
// only helps: no guarantee rests on it.
type cgroup struct {
	dir  string
	file *os.File // dir, opened; nil: there is no such group
}

// newCgroup makes a group below this process's own, if this process may divide that: it is
// delegated (systemd's Delegate=, a user's session), or the root that this process sees.
// All other groups are systemd's to manage. The name has the guard's process number, so
// that the runner finds the group when the guard is gone.
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

// sweep removes the groups of guards that were killed together with their runners. A group
// that holds a process can't be removed.
func sweep(own string) {
	dirs, _ := filepath.Glob(filepath.Join(own, cgroupPrefix+"*")) // the pattern is valid
	for _, dir := range dirs {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), cgroupPrefix))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = unix.Rmdir(dir)
		}
	}
}

// ownCgroup returns the directory of this process's group in cgroups version 2, empty if
// there is none that the process may divide.
func ownCgroup() string {
	memberships, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(memberships)) {
		path, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !found || strings.Contains(path, "..") { // "..": outside of what this process sees
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

// cgroupMount returns where the root of cgroups version 2 is mounted.
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

// delegated reports whether the group has the mark by which systemd delegates one.
func delegated(dir string) bool {
	for _, mark := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, mark, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// hold makes a process that is started with sys begin its life in the group, if there is
// one.
func (c *cgroup) hold(sys *syscall.SysProcAttr) bool {
	if c.file == nil {
		return false
	}
	sys.UseCgroupFD, sys.CgroupFD = true, int(c.file.Fd())
	return true
}

// kill kills all processes in the group. After that the group is of no use: Linux 6.18, for
// one, kills every process that is started in it later.
func (c *cgroup) kill() {
	if c.file != nil {
		_ = os.WriteFile(filepath.Join(c.dir, "cgroup.kill"), []byte("1"), 0) // the children are killed one by one as well
	}
}

// drop stops using the group, and removes it.
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
