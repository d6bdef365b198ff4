package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/internal/keeper"
	"golang.org/x/sys/unix"
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
