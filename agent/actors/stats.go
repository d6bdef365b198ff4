package actors

import "sync/atomic"

// release is how the agent learned that a program acts no longer.
type release uint8

const (
	byReceipt release = iota
	byProof
	byDeadline
	releases
)

func (r release) String() string { return [...]string{"receipt", "proof", "deadline"}[r] }

// counters may be read by any goroutine.
type counters struct {
	candidacies      atomic.Int64
	elected, revoked atomic.Uint64
	released         [releases]atomic.Uint64
	failed           atomic.Uint64
}

// Stats is what was counted.
type Stats struct {
	Candidacies      int64             // that have not ended
	Elected, Revoked uint64            // lines sent to programs
	Released         map[string]uint64 // terms, by how the program was known to have stopped: receipt, proof, deadline
	Failed           uint64            // hooks, each once for each leadership and reason
}

// Stats may be called from any goroutine.
func (r *Registry) Stats() Stats {
	s := Stats{Candidacies: r.stats.candidacies.Load(), Elected: r.stats.elected.Load(), Revoked: r.stats.revoked.Load(),
		Released: map[string]uint64{}, Failed: r.stats.failed.Load()}
	for how := range releases {
		s.Released[how.String()] = r.stats.released[how].Load()
	}
	return s
}
