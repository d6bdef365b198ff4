package runner

import "time"

const (
	// soonest and latest bound the wait before a command that ended is started again. The
	// wait doubles with every end that comes soon after the start.
	soonest = 100 * time.Millisecond
	latest  = 10 * time.Second
	// longRun is how long a command must have run so that its end counts as the first
	// of a row.
	longRun = 10 * time.Second
	// standBack is how long the host is not a candidate after its command has been silent.
	standBack = 10 * time.Second
	// giveUpAfter is after how many ends in a row, each soon after the start, the host lets
	// another host try.
	giveUpAfter = 5
)

// pause is the wait before the start that follows the n-th end in a row.
func pause(n int) time.Duration {
	return min(soonest<<min(n-1, 10), latest)
}
