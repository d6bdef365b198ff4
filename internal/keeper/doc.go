// Package keeper is the small parent of an agent: the process that `doyen agent` turns into,
// whose child is the life, the process that elects.
//
// It guarantees that a life is followed by the next one as soon as the kernel reports its
// end, and by one life at a time (DESIGN.md, K2); that a life which does not tick when it
// wrote that it would is killed, but only by a keeper that was on time itself, so that a host
// that stood still kills nobody; that a life which stops cleanly, or which only an operator
// can repair, ends the keeper with its exit code; that signals reach the life once, and its
// notifications reach the service manager in the keeper's name; and that no life outlives its
// keeper. When no next life can be started it publishes the obituary (K5, K6).
//
// It does not guarantee that a life which dies at once at every start leads: it is started
// again ever less often. A keeper that is killed ends the service, as the death of an agent
// without one does; the next start within the lease goes on by the record.
//
// The two share one page of memory (page.go), by which the life tells when it ticks next.
// A keeper should take little memory, so Main runs in an init, before the packages that the
// agent needs (decision 14), and this package imports little.
package keeper

// Word is the first argument of a process that is to be a keeper.
const Word = "agent-keeper"
