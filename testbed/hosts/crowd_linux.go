package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/keeper"
)

const lowestPriority = 19

// lowerPriority gives processes and their descendants, except keepers, the lowest priority, for
// good. A keeper with the lowest priority would itself be too late to kill anything.
func lowerPriority(pids []int) error {
	all := slices.Clone(pids)
	for _, pid := range pids {
		all = append(all, guard.Descendants(pid)...)
	}
	for _, pid := range all {
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
	return nil
}
