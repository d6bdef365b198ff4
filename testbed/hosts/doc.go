// Package hosts runs agents as real processes of this machine. Each has an address, a data
// directory and a socket of its own. The package does to them what happens to hosts: they are
// killed, frozen, thawed, asked to end, started again; they lose their disk, or it fills up,
// slows down or gets stuck; they are short of processor time; their clocks run fast or slow; their
// links are cut, slow or lossy.
//
// Config.Net chooses what joins the hosts. The loopback interface needs no rights, but its
// links can't be touched. Otherwise each host has a network namespace, and the switch of
// package netns joins them. A fault that is impossible on this machine or network is refused with
// ErrUnavailable.
//
// Close ends all agents and programs. If the testbed itself is killed, Linux kills them; on other
// systems they go on. Namespaces and the disks in them end with the processes. The files lie in
// temporary directories, one of which is in memory. Close removes these. If a testbed was killed,
// the next one removes its directories.
//
// Slow disks and changed clocks work with the shipped binary: when a host's process syncs or
// reads a clock, the kernel asks the testbed (seccomp). The agents do not notice, and hosts
// without such a fault pay nothing.
//
// The package does not look at what the agents report: package observe does.
//
// Faults are stamped on the clock of package boottime. Every agent of the machine stamps its
// changes on the same clock, so the stamps can be compared. For a host whose clock was changed,
// Host.Real translates its stamps.
package hosts
