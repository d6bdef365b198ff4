// Package keeper is the small parent process of an agent. `doyen agent` turns into the keeper;
// its child, the life, is the process that elects.
//
// It guarantees that a life is followed by the next one as soon as the kernel reports its end,
// and that only one life runs at a time (DESIGN.md, K2). A life that does not tick when it
// wrote that it would is killed, but only by a keeper that was on time itself, and only if the
// life's threads did not wait for a processor: a host that stood still kills nobody, nor does
// one that is busy with other work. A life that stops cleanly, or that only an operator can repair,
// ends the keeper with its exit code. Signals reach the life once, and its notifications reach
// the service manager in the keeper's name. No life outlives its keeper. When no next life can
// be started, the keeper ends the lineage: the record, lease pages, hooks (K6). It remains the
// program that the service has started, also after a restart from a new program file.
//
// The package does not guarantee that a life which dies at once at every start leads: such a life is
// started again ever less often. If a keeper is killed, the service ends, as with the death of
// an agent without a keeper; the next start within the lease goes on from the record.
//
// Keeper and life share one page of memory (page.go), in which the life writes when it ticks
// next. A keeper should take little memory. So Main runs in an init, before the packages that
// the agent needs (decision 14), and this package imports little.
package keeper

// Word is the first argument of a process that is to be a keeper.
const Word = "agent-keeper"
