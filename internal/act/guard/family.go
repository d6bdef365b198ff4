package guard

import (
	"errors"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reap reads the status of every child that has ended. childless is true if no child is left. No descendant is
// left then either, since this process is a subreaper.
func Reap(ended func(pid int, status unix.WaitStatus)) (childless bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD: there is no child
			return true
		case pid == 0:
			return false
		default:
			ended(pid, status)
		}
	}
}

// KillFamily sends SIGKILL to the command's process group, if it has a separate one, and to every child. A
// child's number is safe to use: no other process gets it before the child is reaped. Other descendants become
// children when their parents have died, so a later call finds them. err is about a process that this process
// may not kill.
func KillFamily(group int) (err error) {
	if group > 0 {
		killGroup(group)
	}
	for _, pid := range children(unix.Getpid()) {
		hasten(unix.PRIO_PROCESS, pid)
		if fault := syscall.Kill(pid, syscall.SIGKILL); fault != nil && !errors.Is(fault, syscall.ESRCH) {
			err = fault
		}
	}
	return err
}

// inhabited reports whether a child of this process is in the group. If the process with the group's number has
// ended, only such a child shows that the number still belongs to this group.
func inhabited(group int) bool {
	return slices.ContainsFunc(children(unix.Getpid()), func(pid int) bool {
		in, err := unix.Getpgid(pid)
		return err == nil && in == group
	})
}

// killGroup sends SIGKILL to a process group. No process of the group escapes by forking.
func killGroup(group int) {
	hasten(unix.PRIO_PGRP, group)
	_ = syscall.Kill(-group, syscall.SIGKILL) // not an error: the group may have no process left
}

// askFamily sends the signal to the group and to the descendants in other groups, once to each process. A later
// call reaches processes that were forked since. told records which processes have got the signal.
func askFamily(group int, signal syscall.Signal, told map[int]bool) {
	first := group > 0 && !told[-group]
	if first {
		told[-group] = true
		ask(-group, signal)
	}
	for _, pid := range Descendants(unix.Getpid()) {
		if told[pid] {
			continue
		}
		told[pid] = true
		if in, err := unix.Getpgid(pid); err == nil && !(first && in == group) {
			ask(pid, signal)
		}
	}
}

// ask sends a signal, and lets a stopped process continue, so that it can handle the signal.
func ask(pid int, signal syscall.Signal) {
	_ = syscall.Kill(pid, signal) // a process that has ended needs no signal
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// maxDescendants bounds one search for descendants: a fork bomb must not keep its killer busy with
// searching.
const maxDescendants = 10_000

func Descendants(pid int) []int {
	found := children(pid)
	for i := 0; i < len(found) && len(found) < maxDescendants; i++ {
		found = append(found, children(found[i])...)
	}
	return found
}
