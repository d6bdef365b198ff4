// Package keeper is the small parent process of an agent. `doyen agent` turns into the keeper;
// its child, called the life, is the process that elects.
//
// It guarantees that the next life follows as soon as the kernel reports the end of a life, and that only one
// life runs at a time (K2 in docs/guarantees.md). A life announces by when it will tick again. A life that does
// not tick is killed, unless the keeper was late itself, or the life's threads had to wait for a processor:
// neither a paused host nor a busy one loses its agent. If a life stops cleanly, or has a problem that only an
// operator can repair, the keeper ends with the same exit code. A signal that asks for an end reaches the life
// once. The keeper passes the life's reports on to the service manager. No life outlives its keeper. If no next
// life can start, the keeper removes the record and the lease pages (K6), and makes doyen act undo what hooks
// have set up.
//
// A life that dies at once after every start may never lead: it is started again less and less often. If a
// keeper is killed, the service ends, as when an agent without a keeper dies. The next start continues from the
// record if it comes within the lease.
//
// Keeper and life share one page of memory (page.go). The keeper executes, opens and removes only what it was
// given at its own start (Given), whatever a life writes there. A keeper should use little memory. So Main runs
// in an init, before most packages that the agent needs (decision 14), and this package imports little.
package keeper

// Word is the first argument of the keeper's process.
const Word = "agent-keeper"
