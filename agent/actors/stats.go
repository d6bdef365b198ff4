package actors

import "sync/atomic"

// Counters may be read by any goroutine.
type Counters struct {
	Candidacies      atomic.Int64  // that have not ended
	Elected, Revoked atomic.Uint64 // lines sent to programs
	Failed           atomic.Uint64 // hooks, each once for each leadership and reason

	// Terms released, by how it was known that a program or companion had stopped.
	ByReceipt, ByProof, ByDeadline atomic.Uint64
}
