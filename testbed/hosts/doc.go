// Package hosts runs agents as real processes of this machine, each with an
// address, a data directory and a socket of its own, and does to them what
// happens to hosts: they are killed, frozen, thawed, asked to end, started again;
// they lose their disk, or it fills up, slows down or gets stuck; they are short
// of processors or memory; their clocks run fast or slow; their links are cut,
// slow and lossy.
//
// What joins the hosts is Config.Net: the loopback interface, which needs no
// rights and whose links can't be touched, or a network namespace for each and
// the switch of package netns. A fault that this machine or that network can't
// have is refused with ErrUnavailable.
//
// It guarantees that no process outlives the testbed: Close ends every one of
// them, and if the testbed itself is killed, the kernel kills them (Linux) or
// they notice and end (elsewhere, for agents that are this executable run
// again). Namespaces and the disks in them end with the processes. All files lie
// below one temporary directory, which Close removes; one that a killed testbed
// left behind, and its control groups, the next removes.
//
// Slow disks and clocks work on the shipped binary: the kernel asks the testbed
// about these system calls of a host's processes (seccomp). The agents know
// nothing of it, and other hosts pay nothing for it.
//
// It does not look at what the agents report, which is package observe's work.
//
// Faults are stamped on the clock of package boottime, which every agent of the
// machine stamps its changes on, so the two compare; for a host whose clock was
// changed, Host.Real translates.
package hosts
