// Package keeper is the small parent process of an agent. `doyen agent` turns into the keeper;
// its child, called the life, is the process that elects.
//
// It guarantees that a life that ends is followed by the next one as soon as the kernel reports the end,
// and that only one life runs at a time (K2 in docs/guarantees.md). A life announces by when it will tick
// again. A life that does not tick is killed, unless the keeper was late itself, or the life's threads had
// to wait for a processor: so neither a host that was paused nor a busy one loses its agent. If a life
// stops cleanly, or ends with a problem that only an operator can repair, the keeper ends with the same
// exit code. A signal that asks for an end reaches the life once. What the life reports to the service
// manager is sent by the keeper. No life outlives its keeper. If no next life can be started, the keeper
// removes the record and the lease pages (K6), and makes doyen act undo what hooks have set up.
//
// The package does not guarantee that a life leads if it dies at once after every start: it is then
// started again less and less often. If a keeper is killed, the service ends, as when an agent
// without a keeper dies. The next start continues from the record if it comes within the lease.
//
// Keeper and life share one page of memory (page.go). The keeper executes, opens and removes only
// what it was given at its own start (Given), even if a life writes something else there. A keeper
// should use little memory. So Main runs in an init, before most packages that the agent needs
// (decision 14), and this package imports little.
package keeper

// Word is the first argument of a process that has to be a keeper.
const Word = "agent-keeper"
