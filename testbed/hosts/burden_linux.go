package hosts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/internal/keeper"
	"golang.org/x/sys/unix"
)

// burden takes processor time and memory from a host's processes. It uses control groups where
// the testbed may make them, else means that need no rights.
type burden struct {
	group    group
	starving bool
	memory   int64 // bytes, 0: no bound
	spinners []*spinner
	duty     *duty
}

func newBurden(host string) *burden { return &burden{group: newGroup(host)} }

// starve begins or ends the starvation of the processes that exist. Each process that starts
// later has to be admitted.
func (b *burden) starve(on bool, s *spawner, pids []int, signal func(syscall.Signal)) error {
	switch {
	case on == b.starving:
		return nil
	case b.group.cpu == "" && on:
		b.duty = newDuty(signal)
	case b.group.cpu == "":
		b.duty.close()
	case on:
		if err := b.squeeze(s, pids); err != nil {
			return errors.Join(err, b.clear())
		}
	default:
		if err := b.clear(); err != nil {
			return err
		}
		// Processes can't leave their group: there may be no other group for them. The group
		// gets a very high bound instead.
		if err := b.group.boundCPU(starvePeriod*1000, starvePeriod); err != nil {
			return err
		}
	}
	b.starving = on
	return nil
}

// squeeze puts the host's processes and busy ones in one group and bounds its processor time.
func (b *burden) squeeze(s *spawner, pids []int) error {
	if err := b.group.boundCPU(starveShare, starvePeriod); err != nil {
		return err
	}
	if err := b.prepare(runtime.NumCPU(), s); err != nil {
		return err
	}
	for _, spinner := range b.spinners {
		pids = append(pids, spinner.cmd.Process.Pid)
	}
	for _, pid := range family(pids) {
		if err := admit(b.group.cpu, pid); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("starve process %d: %w", pid, err)
		}
	}
	return b.spin()
}

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
	if err := b.prepare(busy, s); err != nil {
		return errors.Join(err, b.clear())
	}
	return b.spin()
}

const lowestPriority = 19

// prepare starts busy processes, which wait for spin.
func (b *burden) prepare(n int, s *spawner) error {
	for range n {
		spinner, err := newSpinner(s)
		if err != nil {
			return err
		}
		b.spinners = append(b.spinners, spinner)
	}
	return nil
}

func (b *burden) spin() error {
	for _, spinner := range b.spinners {
		if err := spinner.spin(); err != nil {
			return err
		}
	}
	return nil
}

func (b *burden) clear() error {
	var errs []error
	for _, s := range b.spinners {
		errs = append(errs, s.close())
	}
	b.spinners = nil
	return errors.Join(errs...)
}

// limit bounds the memory of the processes that exist; 0 ends the bound.
func (b *burden) limit(bytes int64, pids []int) error {
	if b.group.memory != "" {
		if err := b.group.boundMemory(bytes); err != nil {
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
	if b.group.memory != "" {
		err = admit(b.group.memory, pid)
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

// admit puts a new process under the bounds that hold now.
func (b *burden) admit(pid int) error {
	if b.starving && b.group.cpu != "" {
		if err := admit(b.group.cpu, pid); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("starve process %d: %w", pid, err)
		}
	}
	if b.memory != 0 {
		return b.remember(pid)
	}
	return nil
}

// lift ends starvation that works by stop signals, so that processes react to other signals.
func (b *burden) lift() {
	if b.duty != nil && b.starving {
		b.duty.close()
		b.starving = false
	}
}

// close ends all bounds and removes the group. The host's processes must have ended.
func (b *burden) close() error {
	b.lift()
	return errors.Join(b.clear(), b.group.remove())
}

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

// spinner is a process that uses a processor all the time once spin has been called.
type spinner struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func newSpinner(s *spawner) (*spinner, error) {
	cmd := exec.Command("/bin/sh", "-c", "read go && while :; do :; done")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a busy program: %w", err)
	}
	if err := s.start(cmd); err != nil {
		return nil, fmt.Errorf("start a busy program: %w", err)
	}
	return &spinner{cmd, stdin}, nil
}

func (s *spinner) spin() error {
	_, err := io.WriteString(s.stdin, "go\n")
	return err
}

func (s *spinner) close() error {
	_ = s.cmd.Process.Kill()
	err := s.cmd.Wait()
	if _, killed := errors.AsType[*exec.ExitError](err); killed {
		return nil
	}
	return err
}
