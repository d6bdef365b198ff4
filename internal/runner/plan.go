package runner

import "time"

const (
	// shortMargin is kept between SIGKILL and a lease's end even when a tenth of
	// the lease is less: a process group needs some milliseconds to die.
	shortMargin = 50 * time.Millisecond
	// longMargin is enough for any: a tenth of a longer lease would be idle time.
	longMargin = time.Second
	// soonest and latest bound the wait before a command that ended is started
	// again; it doubles with every end that comes soon after the start.
	soonest = 100 * time.Millisecond
	latest  = 10 * time.Second
	// settled is how long a command must have run for its end to count as the
	// first one.
	settled = 10 * time.Second
	// giveUpAfter is how many ends, each soon after the start, make the host let
	// another one try.
	giveUpAfter = 5
)

// schedule is when a command that leads must be ended unless the lease is
// renewed before.
type schedule struct {
	TermAt int64 `json:"term_at"` // SIGTERM
	KillAt int64 `json:"kill_at"` // SIGKILL to whatever is left
}

// margin is how long before the end of a lease of that length SIGKILL is sent.
func margin(lease time.Duration) time.Duration {
	return min(max(lease/10, min(shortMargin, lease/4)), longMargin)
}

// plan returns the schedule of a lease that ends at the instant. lease is its
// length as far as it is known: the longest that was ever left of it.
func plan(until int64, lease time.Duration) schedule {
	m := margin(lease)
	return schedule{TermAt: until - int64(max(lease/3, 2*m)), KillAt: until - int64(m)}
}

// pause is the wait before the start that follows the n-th end in a row.
func pause(n int) time.Duration {
	return min(soonest<<min(n-1, 10), latest)
}
