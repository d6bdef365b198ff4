package runner

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// hurry gives this process priority over others, where it may: a process that has to
// kill by a deadline must run on a busy machine. It returns the priority for the
// command's processes, which is the one that this process had. Each thread has a
// priority, and the threads that it makes inherit it.
func hurry() (nice int) {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	threads, _ := filepath.Glob("/proc/self/task/*") // of a pattern that is valid
	for _, path := range threads {
		if thread, err := strconv.Atoi(filepath.Base(path)); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, thread, mostUrgent) // root may; others do without
		}
	}
	return 20 - raw
}

// mostUrgent is the least nice value there is.
const mostUrgent = -20

// calm gives a process that has just started its own priority, and its group, if it has its
// own: it may have made other processes already.
func calm(pid, group, nice int) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, nice)
	if group > 0 {
		_ = unix.Setpriority(unix.PRIO_PGRP, group, nice)
	}
}

// hasten gives processes that are to be killed the highest priority: a process must run to die.
func hasten(kind, who int) { _ = unix.Setpriority(kind, who, mostUrgent) }
