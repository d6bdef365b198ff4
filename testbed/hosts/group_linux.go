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

// group is a control group for a host's processes. It bounds their processor time and their
// memory, and exists from its first bound on. In version 2 of control groups it is one
// directory, in version 1 one for each controller.
type group struct {
	cpu, memory string // directories, "" where the testbed may not make one
	version     int
}

const (
	cgroupRoot = "/sys/fs/cgroup"
	// groupPrefix and the testbed's process ID begin a group's name. They show the next
	// testbed which groups are abandoned.
	groupPrefix = "doyen-testbed."
)

// parents returns the directories in which groups can be made, by controller. In version 2
// that is the root for all, because only the root may hold both processes and groups with
// bounds. In version 1 it is, for each controller, the group that this process is in.
func parents() (byController map[string]string, version int) {
	byController = map[string]string{}
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		enabled, _ := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"))
		for _, controller := range strings.Fields(string(enabled)) {
			byController[controller] = cgroupRoot
		}
		return byController, 2
	}
	all, _ := os.ReadFile("/proc/self/cgroup") // empty if it can't be read
	for line := range strings.Lines(string(all)) {
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 && fields[1] != "" {
			byController[fields[1]] = filepath.Join(cgroupRoot, fields[1], fields[2])
		}
	}
	return byController, 1
}

// newGroup finds where the group can be made. It does not make it yet.
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

// writable tries to make a group, because file permissions alone do not tell.
func writable(parent string) bool {
	dir, err := os.MkdirTemp(parent, groupPrefix+strconv.Itoa(os.Getpid())+".probe.")
	return err == nil && os.Remove(dir) == nil
}

// sweepGroups removes groups whose testbed is gone. A group with processes in it stays.
func sweepGroups() {
	byController, _ := parents()
	for _, controller := range []string{"cpu", "memory"} {
		parent, ok := byController[controller]
		if !ok {
			continue
		}
		all, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*")) // only a bad pattern fails
		for _, dir := range all {
			pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), ".")
			if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
				_ = os.Remove(dir)
			}
		}
	}
}

// bound makes the group, if there is none, and writes one of its files.
func bound(dir, file, value string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make control group: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
		return fmt.Errorf("set bound: %w", err)
	}
	return nil
}

// boundCPU lets the group use quota of processor time in each period; 0 is no bound.
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

// boundMemory bounds the group's memory; 0 is no bound.
func (g group) boundMemory(bytes int64) error {
	value, file, unbound := strconv.FormatInt(bytes, 10), "memory.max", "max"
	if g.version == 1 {
		file, unbound = "memory.limit_in_bytes", "-1"
	}
	if bytes == 0 {
		value = unbound
	}
	if g.version == 2 { // otherwise swapped memory does not count; without swap the file is missing
		_ = bound(g.memory, "memory.swap.max", "0")
	}
	return bound(g.memory, file, value)
}

// admit puts a process into one of the group's directories.
func admit(dir string, pid int) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// remove removes the group. Its processes have ended, but the kernel takes a moment to notice.
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
