package runner

import "time"

const (
	// soonest and latest bound the wait before a command that has ended is started again. The wait
	// doubles with each end that comes soon after a start.
	soonest = 100 * time.Millisecond
	latest  = 10 * time.Second
	// longRun is how long a command must have run so that its end starts a new count.
	longRun = 10 * time.Second
	// standBack is how long the host is not a candidate after its command was silent or reported a failure.
	standBack = 10 * time.Second
	// giveUpAfter is how many ends in a row, each soon after a start, make the host let another
	// host lead.
	giveUpAfter = 5
)

// pause is the wait before the next start after the n-th end in a row.
func pause(n int) time.Duration {
	return min(soonest<<min(n-1, 10), latest)
}

// timeoutAt is when a command that was started at began has run for too long.
func (c Config) timeoutAt(began int64) int64 {
	if c.Timeout <= 0 || began > never-int64(c.Timeout) {
		return never
	}
	return began + int64(c.Timeout)
}
