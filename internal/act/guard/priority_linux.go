package guard

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Hurry gives this process priority over others, if it may: a process that has to kill by a
// deadline must get to run on a busy machine. It returns the priority that this process had
// before, for the command's processes. Each thread has its own priority, and new threads
// inherit it.
func Hurry() (nice int) {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	threads, _ := filepath.Glob("/proc/self/task/*") // the pattern is valid
	for _, path := range threads {
		if thread, err := strconv.Atoi(filepath.Base(path)); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, thread, mostUrgent) // root may; for others it fails
		}
	}
	return 20 - raw
}

// mostUrgent is the lowest nice value, which is the highest priority.
const mostUrgent = -20

// calm gives the priority nice to a process that has just started and, if it has a separate
// group, to that group: the process may have made others already.
func calm(pid, group, nice int) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, nice)
	if group > 0 {
		_ = unix.Setpriority(unix.PRIO_PGRP, group, nice)
	}
}

// hasten gives processes that are to be killed the highest priority: a process must run to die.
func hasten(kind, who int) { _ = unix.Setpriority(kind, who, mostUrgent) }
