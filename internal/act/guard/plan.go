package guard

import "time"

const (
	// shortMargin is the least time between SIGKILL and the end of a lease of 200 ms or more: a process group
	// needs some milliseconds to die.
	shortMargin = 50 * time.Millisecond
	// longMargin is the longest such time: nothing runs in it.
	longMargin = time.Second
)

// Schedule is when the command must be ended, unless the lease is renewed before then.
type Schedule struct {
	TermAt int64 `json:"term_at"` // SIGTERM
	KillAt int64 `json:"kill_at"` // SIGKILL to all that is left
}

// Margin returns how long before the end of a lease of this length SIGKILL is sent.
func Margin(lease time.Duration) time.Duration {
	return min(max(lease/10, min(shortMargin, lease/4)), longMargin)
}

// Plan returns the schedule of a lease that ends at until. Callers estimate the lease's length:
// they pass the longest time until its end that they have seen.
func Plan(until int64, lease time.Duration) Schedule {
	m := Margin(lease)
	return Schedule{TermAt: until - int64(max(lease/3, 2*m)), KillAt: until - int64(m)}
}
