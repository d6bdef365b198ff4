package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// group is a control group that bounds the memory of a host's processes. It exists from its
// first bound on.
type group struct {
	dir     string // "" where the testbed may not make one
	version int    // of control groups
}

const (
	cgroupRoot = "/sys/fs/cgroup"
	// groupPrefix and the testbed's process ID begin a group's name. They show the next
	// testbed which groups are abandoned.
	groupPrefix = "doyen-testbed."
)

// parent returns the directory in which groups can be made, "" if there is none. In version 2
// of control groups that is the root, because only the root may hold both processes and groups
// with bounds. In version 1 it is the group that this process is in.
func parent() (dir string, version int) {
	if enabled, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.subtree_control")); err == nil {
		if slices.Contains(strings.Fields(string(enabled)), "memory") {
			dir = cgroupRoot
		}
		return dir, 2
	}
	all, _ := os.ReadFile("/proc/self/cgroup") // empty if it can't be read
	for line := range strings.Lines(string(all)) {
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 && fields[1] == "memory" {
			dir = filepath.Join(cgroupRoot, fields[1], fields[2])
		}
	}
	return dir, 1
}

// newGroup finds where the group can be made. It does not make it yet.
func newGroup(name string) group {
	in, version := parent()
	if in == "" || !writable(in) {
		return group{}
	}
	return group{filepath.Join(in, fmt.Sprintf("%s%d.%s", groupPrefix, os.Getpid(), name)), version}
}

// writable tries to make a group, because file permissions alone do not tell.
func writable(parent string) bool {
	dir, err := os.MkdirTemp(parent, groupPrefix+strconv.Itoa(os.Getpid())+".probe.")
	return err == nil && os.Remove(dir) == nil
}

// sweepGroups removes groups whose testbed is gone. A group with processes in it stays.
func sweepGroups() {
	in, _ := parent()
	all, _ := filepath.Glob(filepath.Join(in, groupPrefix+"*")) // only a bad pattern fails
	for _, dir := range all {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), ".")
		if _, err := os.Stat("/proc/" + pid); in != "" && errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(dir)
		}
	}
}

// bound makes the group, if there is none, and bounds its memory; 0 is no bound.
func (g group) bound(bytes int64) error {
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make control group: %w", err)
	}
	value, file, unbound := strconv.FormatInt(bytes, 10), "memory.max", "max"
	if g.version == 1 {
		file, unbound = "memory.limit_in_bytes", "-1"
	} else { // otherwise swapped memory does not count; without swap the file is missing
		_ = os.WriteFile(filepath.Join(g.dir, "memory.swap.max"), []byte("0"), 0)
	}
	if bytes == 0 {
		value = unbound
	}
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0); err != nil {
		return fmt.Errorf("set bound: %w", err)
	}
	return nil
}

func (g group) admit(pid int) error {
	return os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// remove removes the group. Its processes have ended, but the kernel takes a moment to notice.
func (g group) remove() error {
	if g.dir == "" {
		return nil
	}
	err := os.Remove(g.dir)
	for n := 0; n < 200 && err != nil && !errors.Is(err, os.ErrNotExist); n++ {
		<-time.After(5 * time.Millisecond)
		err = os.Remove(g.dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove control group: %w", err)
	}
	return nil
}
