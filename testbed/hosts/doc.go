// Package hosts runs agents as real processes of this machine, each with an
// address, a data directory and a socket of its own, and does to them what
// happens to hosts: they are killed, frozen, thawed, told to end, started again.
//
// It guarantees that no agent outlives the testbed: Close ends every one of
// them, and if the testbed itself is killed, the kernel kills the agents (Linux)
// or they notice and end (elsewhere, for agents that are this executable run
// again). All files lie below one temporary directory, which Close removes; one
// that a killed testbed left behind is removed by the next.
//
// It does not cut or slow the network between agents: they share the loopback
// interface of this machine. Nor does it look at what the agents say, which is
// package observe's work.
//
// Faults are stamped on the clock of package boottime, which every agent of the
// machine stamps its changes on, so the two compare.
package hosts
