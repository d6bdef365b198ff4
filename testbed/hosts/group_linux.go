package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// group is a control group for a host's processes: what bounds their share of
// the processors and their memory. It exists while it bounds something. Version
// 2 has one directory, version 1 one for each controller.
type group struct {
	cpu, memory string // directories, "" where this process may not make one
	version     int
}

const (
	cgroupRoot = "/sys/fs/cgroup"
	// groupPrefix and the testbed's process ID begin a group's name, so that the
	// next testbed knows which are abandoned.
	groupPrefix = "doyen-testbed."
)

// parents are where groups can be, by controller: one directory for all in
// version 2, where the root alone may have processes and bound groups; in
// version 1 below the groups that this process is in.
func parents() (byController map[string]string, version int) {
	byController = map[string]string{}
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		enabled, _ := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"))
		for _, controller := range strings.Fields(string(enabled)) {
			byController[controller] = cgroupRoot
		}
		return byController, 2
	}
	all, _ := os.ReadFile("/proc/self/cgroup") // none where it can't be read
	for line := range strings.Lines(string(all)) {
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 && fields[1] != "" {
			byController[fields[1]] = filepath.Join(cgroupRoot, fields[1], fields[2])
		}
	}
	return byController, 1
}

// newGroup finds where a group can be made, and makes none.
func newGroup(name string) group {
	byController, version := parents()
	name = fmt.Sprintf("%s%d.%s", groupPrefix, os.Getpid(), name)
	g := group{version: version}
	if parent, ok := byController["cpu"]; ok && writable(parent) {
		g.cpu = filepath.Join(parent, name)
	}
	if parent, ok := byController["memory"]; ok && writable(parent) {
		g.memory = filepath.Join(parent, name)
	}
	return g
}

// writable tries to make a group, for rights alone do not show it.
func writable(parent string) bool {
	dir, err := os.MkdirTemp(parent, groupPrefix+strconv.Itoa(os.Getpid())+".probe.")
	return err == nil && os.Remove(dir) == nil
}

// sweepGroups removes groups whose testbed is gone. One with processes in it
// stays.
func sweepGroups() {
	byController, _ := parents()
	for _, controller := range []string{"cpu", "memory"} {
		parent, ok := byController[controller]
		if !ok {
			continue
		}
		all, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*")) // the pattern is a good one
		for _, dir := range all {
			pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), ".")
			if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
				_ = os.Remove(dir)
			}
		}
	}
}

// bound writes one of the group's files, and makes the group first.
func bound(dir, file, value string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make control group: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
		return fmt.Errorf("set bound: %w", err)
	}
	return nil
}

// boundCPU lets the group have that much processor time in each period; 0 is no
// bound.
func (g group) boundCPU(quota, period time.Duration) error {
	q, p := strconv.FormatInt(quota.Microseconds(), 10), strconv.FormatInt(period.Microseconds(), 10)
	if g.version == 2 {
		if quota == 0 {
			q = "max"
		}
		return bound(g.cpu, "cpu.max", q+" "+p)
	}
	if quota == 0 {
		q = "-1"
	}
	return errors.Join(bound(g.cpu, "cpu.cfs_period_us", p), bound(g.cpu, "cpu.cfs_quota_us", q))
}

// boundMemory lets the group have that many bytes; 0 is no bound.
func (g group) boundMemory(bytes int64) error {
	value, file, unbound := strconv.FormatInt(bytes, 10), "memory.max", "max"
	if g.version == 1 {
		file, unbound = "memory.limit_in_bytes", "-1"
	}
	if bytes == 0 {
		value = unbound
	}
	if g.version == 2 { // what is swapped out is not counted otherwise; there may be no swap
		_ = bound(g.memory, "memory.swap.max", "0")
	}
	return bound(g.memory, file, value)
}

// admit puts a process into one of the group's directories.
func admit(dir string, pid int) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// remove removes the group, whose processes have ended: the kernel takes a
// moment to notice.
func (g group) remove() error {
	var errs []error
	for _, dir := range []string{g.cpu, g.memory} {
		if dir == "" {
			continue
		}
		err := os.Remove(dir)
		for range 200 {
			if err == nil || errors.Is(err, os.ErrNotExist) {
				break
			}
			<-time.After(5 * time.Millisecond)
			err = os.Remove(dir)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove control group: %w", err))
		}
	}
	return errors.Join(errs...)
}
