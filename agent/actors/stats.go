package actors

import "sync/atomic"

// Counters may be read by any goroutine.
type Counters struct {
	Candidacies      atomic.Int64  // candidacies that have not ended, the host's not included
	Elected, Revoked atomic.Uint64 // lines sent to programs
	Failed           atomic.Uint64 // hooks that failed, counted once for each leadership and reason

	// Released terms, by how it became known that a program or companion had stopped.
	ByReceipt, ByProof, ByDeadline atomic.Uint64
}
