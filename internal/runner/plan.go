package runner

import "time"

const (
	// shortMargin is the time between SIGKILL and a lease's end if a tenth of the lease is
	// less: a process group needs some milliseconds to die.
	shortMargin = 50 * time.Millisecond
	// longMargin is the most that any lease needs there: more would be idle time.
	longMargin = time.Second
	// soonest and latest bound the wait before a command that ended is started again. The
	// wait doubles with every end that comes soon after the start.
	soonest = 100 * time.Millisecond
	latest  = 10 * time.Second
	// settled is how long a command must have run so that its end counts as the first
	// of a row.
	settled = 10 * time.Second
	// standBack is how long the host is not a candidate after its command has been silent.
	standBack = 10 * time.Second
	// giveUpAfter is after how many ends in a row, each soon after the start, the host lets
	// another host try.
	giveUpAfter = 5
)

// schedule is when the command must be ended, unless the lease is renewed before.
type schedule struct {
	TermAt int64 `json:"term_at"` // SIGTERM
	KillAt int64 `json:"kill_at"` // SIGKILL to all that is left
}

// margin is how long SIGKILL is sent before the end of a lease of that length.
func margin(lease time.Duration) time.Duration {
	return min(max(lease/10, min(shortMargin, lease/4)), longMargin)
}

// plan returns the schedule of a lease that ends at until. lease is its length, as far as
// that is known: the longest time that was ever left of it.
func plan(until int64, lease time.Duration) schedule {
	m := margin(lease)
	return schedule{TermAt: until - int64(max(lease/3, 2*m)), KillAt: until - int64(m)}
}

// pause is the wait before the start that follows the n-th end in a row.
func pause(n int) time.Duration {
	return min(soonest<<min(n-1, 10), latest)
}
