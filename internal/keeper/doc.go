// Package keeper is the small parent process of an agent. `doyen agent` turns into the keeper;
// its child, called the life, is the process that elects.
//
// It guarantees that a life that ends is followed by the next one as soon as the kernel reports the
// end, and that only one life runs at a time (K2 in docs/guarantees.md). A life announces when it will
// tick next. One that does not is killed, unless the keeper was late itself, or the life's threads
// had to wait for a processor: so neither a host that stood still nor a busy one loses its agent.
// A life that stops cleanly, or that only an operator can repair, ends the keeper with its exit code.
// A signal that asks for an end reaches the life once; what the life reports to the service manager
// comes from the keeper. No life outlives its keeper. When no next life can be started, the keeper
// removes the record and the lease pages (K6), and has doyen act undo what hooks have set up.
//
// The package does not guarantee that a life which dies at once at every start leads: such a life is
// started again ever less often. If a keeper is killed, the service ends, as with the death of
// an agent without a keeper; the next start within the lease goes on from the record.
//
// Keeper and life share one page of memory (page.go). The keeper executes, opens and removes only
// what it was given at its start (Given), whatever a life writes there. A keeper should take little
// memory. So Main runs in an init, before most packages that the agent needs (decision 14), and this
// package imports little.
package keeper

// Word is the first argument of a process that is to be a keeper.
const Word = "agent-keeper"
