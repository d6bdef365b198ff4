// Package virtual plays agents in virtual time. It lets events happen in order, and carries
// out what an elector asks for in the order that the protocol rests on.
//
//   - Timeline is a queue of events and of the moments at which agents want to be
//     woken.
//   - Actions lists what one Output asks for, in order.
//   - Cluster is a number of agents that share one exact clock, with a network and
//     disks whose delays the caller draws. It serves `doyen plan` and the golden
//     traces. testbed/simulation has clocks, networks and disks that fail, and uses
//     the first two only.
//
// It is deterministic: it draws no random numbers, reads no clock and starts no goroutine,
// so equal calls give equal runs. It knows electors only by their Step, so that the tests of
// the elector can use it. It checks no rules: the caller does.
package virtual
