package guard

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Hurry gives this process the highest priority, if it may: a process that kills by a deadline has to run even
// on a busy machine. It returns the former nice value, for the command's processes. Every thread has a separate
// priority, and new threads inherit it.
func Hurry() (nice int) {
	nice = Nice()
	threads, _ := filepath.Glob("/proc/self/task/*") // the pattern is valid
	for _, path := range threads {
		if thread, err := strconv.Atoi(filepath.Base(path)); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, thread, mostUrgent) // root may do this; for other users it fails
		}
	}
	return nice
}

// mostUrgent is the lowest nice value, which is the highest priority.
const mostUrgent = -20

// calm sets the nice value of a process that has just started. If the process has a separate group, calm sets
// it for the group too: the process may already have started others.
func calm(pid, group, nice int) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, nice)
	if group > 0 {
		_ = unix.Setpriority(unix.PRIO_PGRP, group, nice)
	}
}

// hasten gives processes that are to be killed the highest priority, since a process has to run to die.
func hasten(kind, who int) { _ = unix.Setpriority(kind, who, mostUrgent) }
