package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/keeper"
)

const lowestPriority = 19

// lowerPriority gives processes and their descendants, except keepers, the lowest priority, for
// good. A keeper with the lowest priority would itself be too late to kill anything.
func lowerPriority(pids []int) error {
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
	return nil
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
