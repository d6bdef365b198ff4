package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/keeper"
)

// burden bounds the memory of a host's processes, and has busy ones compete with them for the
// processor. Memory is bounded by a control group where the testbed may make one, else by a
// limit of each process, which needs no rights.
type burden struct {
	group    group
	memory   int64 // bytes, 0: no bound
	spinners []*exec.Cmd
}

func newBurden(host string) *burden { return &burden{group: newGroup(host)} }

// crowd gives the processes, except keepers, and all their threads the lowest priority, which their
// descendants have too, and starts busy processes of the usual one; 0: it ends those. A keeper that
// was late itself would kill nothing.
func (b *burden) crowd(busy int, s *spawner, pids []int) error {
	if busy == 0 {
		return b.clear()
	}
	for _, pid := range family(pids) {
		if name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); string(name) == keeper.Word+"\n" {
			continue
		}
		threads, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*")
		for _, thread := range threads {
			id, err := strconv.Atoi(filepath.Base(thread))
			if err == nil {
				err = unix.Setpriority(unix.PRIO_PROCESS, id, lowestPriority)
			}
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("lower the priority of process %d: %w", pid, err)
			}
		}
	}
	for range busy {
		cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := s.start(cmd); err != nil {
			return errors.Join(fmt.Errorf("start a busy program: %w", err), b.clear())
		}
		b.spinners = append(b.spinners, cmd)
	}
	return nil
}

const lowestPriority = 19

// clear ends the busy processes.
func (b *burden) clear() error {
	var errs []error
	for _, cmd := range b.spinners {
		_ = cmd.Process.Kill()
		err := cmd.Wait()
		if _, killed := errors.AsType[*exec.ExitError](err); !killed {
			errs = append(errs, err)
		}
	}
	b.spinners = nil
	return errors.Join(errs...)
}

// limit bounds the memory of the processes that exist; 0 ends the bound.
func (b *burden) limit(bytes int64, pids []int) error {
	if b.group.dir != "" {
		if err := b.group.bound(bytes); err != nil {
			return err
		}
	}
	b.memory = bytes
	for _, pid := range family(pids) {
		if err := b.remember(pid); err != nil {
			return err
		}
	}
	return nil
}

func (b *burden) remember(pid int) error {
	var err error
	if b.group.dir != "" {
		err = b.group.admit(pid)
	} else {
		bound := unix.Rlimit{Cur: uint64(b.memory), Max: unix.RLIM_INFINITY}
		if b.memory == 0 {
			bound.Cur = unix.RLIM_INFINITY
		}
		var now unix.Rlimit
		if err = unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &now); err == nil {
			bound.Max, bound.Cur = now.Max, min(bound.Cur, now.Max)
			err = unix.Prlimit(pid, unix.RLIMIT_DATA, &bound, nil)
		}
	}
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("limit memory of process %d: %w", pid, err)
	}
	return nil
}

// admit puts a new process under the bound that holds now.
func (b *burden) admit(pid int) error {
	if b.memory == 0 {
		return nil
	}
	return b.remember(pid)
}

// close ends all bounds and removes the group. The host's processes must have ended.
func (b *burden) close() error { return errors.Join(b.clear(), b.group.remove()) }

// family returns the given processes, then all their descendants.
func family(pids []int) []int {
	for i := 0; i < len(pids); i++ { // pids grows
		tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pids[i]) + "/task/*/children")
		for _, file := range tasks {
			children, _ := os.ReadFile(file) // the process may have ended
			for _, child := range strings.Fields(string(children)) {
				if pid, err := strconv.Atoi(child); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}

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
