// Package virtual runs agents in virtual time. Events happen in order, and what an elector asks for is
// carried out in the order that the protocol depends on.
//
//   - Timeline is a queue of events and of the moments at which agents want to be
//     woken.
//   - Actions lists what one Output asks for, in order.
//   - Cluster is a number of agents that share one exact clock, with a network and
//     disks whose delays the caller draws. `doyen plan` and the golden traces use it.
//     testbed/simulation has clocks, networks and disks that fail, so it uses only the
//     first two.
//
// It is deterministic: it draws no random numbers, reads no clock and starts no goroutine, so equal calls give
// equal runs. It uses only an elector's method Step, so that the elector's tests can use the package. It checks
// no rules: its callers do.
package virtual
