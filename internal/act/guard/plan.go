package guard

import "time"

const (
	// shortMargin is the time between SIGKILL and a lease's end if a tenth of the lease is
	// less: a process group needs some milliseconds to die.
	shortMargin = 50 * time.Millisecond
	// longMargin is the most that any lease needs there: more would be idle time.
	longMargin = time.Second
)

// Schedule is when the command must be ended, unless the lease is renewed before.
type Schedule struct {
	TermAt int64 `json:"term_at"` // SIGTERM
	KillAt int64 `json:"kill_at"` // SIGKILL to all that is left
}

// Margin is how long SIGKILL is sent before the end of a lease of that length.
func Margin(lease time.Duration) time.Duration {
	return min(max(lease/10, min(shortMargin, lease/4)), longMargin)
}

// Plan returns the schedule of a lease that ends at until. lease is its length, as far as
// that is known: the longest time that was ever left of it.
func Plan(until int64, lease time.Duration) Schedule {
	m := Margin(lease)
	return Schedule{TermAt: until - int64(max(lease/3, 2*m)), KillAt: until - int64(m)}
}
