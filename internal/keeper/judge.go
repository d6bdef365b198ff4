package keeper

import "time"

const never = int64(1<<63 - 1)

// watch judges whether the life is overdue. It reads no clock: all instants are given to it,
// in nanoseconds.
type watch struct {
	next      int64         // the life has written that it will tick by then; never: the life is not judged
	allowance time.Duration // how much later the tick may come
	due       int64         // when step is to be called next
	checks    int           // how many in a row were on time and found the life overdue
}

// A life is killed after this many checks in a row that were on time: a keeper that was late
// can't know whether the life could run meanwhile.
const enoughChecks = 4

// step is called at due, or later, with what the life has written by then. It returns true if
// the life hangs: the life then had its allowance, and this keeper ran on time throughout.
func (w *watch) step(now, next int64, allowance time.Duration) (hangs bool) {
	part := int64(allowance) / enoughChecks
	late := now-w.due > part
	switch {
	case next == never:
		w.due, w.checks = never, 0
	case next != w.next || allowance != w.allowance:
		w.due, w.checks = max(next, now)+part, 0
	case late:
		w.due, w.checks = now+part, 0
	case now < w.due: // woken for something else
	default:
		w.checks++
		w.due = now + part
	}
	w.next, w.allowance = next, allowance
	return w.checks >= enoughChecks
}

const (
	// failures is how many lives in a row may end before they run; then the lineage is given up.
	failures = 3
	// shortLife is how long a life must last for the next one to be started at once.
	shortLife = 2 * time.Second
	// backOff is the first wait when short lives follow each other, and maxBackOff the longest.
	backOff    = 100 * time.Millisecond
	maxBackOff = 5 * time.Second
	// maxPatience bounds the factor of a life's allowance, which grows when a life was killed
	// that may have been slow, in vain. One that a signal had stopped was not slow.
	maxPatience = 32
)

// lives counts how the lives ended.
type lives struct {
	short    int // short lives in a row
	failed   int // lives in a row that never ran
	ran      bool
	patience int // factor of the allowance; 0 means 1
}

// ended counts a life, and returns how long to wait before the next one.
func (l *lives) ended(lasted time.Duration, ran, slow bool) time.Duration {
	l.ran = l.ran || ran
	switch {
	case slow && lasted < time.Hour: // one that hung after long was not slow
		l.patience = min(maxPatience, 2*l.factor())
	case ran && lasted >= time.Minute:
		l.patience = 1
	}
	if l.failed++; ran {
		l.failed = 0
	}
	if l.short++; lasted >= shortLife {
		l.short = 0
	}
	if l.short < failures {
		return 0
	}
	return min(maxBackOff, backOff<<min(l.short-failures, 10))
}

func (l *lives) factor() int { return max(1, l.patience) }

// hopeless reports whether the lineage is given up: no life can be started.
func (l *lives) hopeless() bool { return l.failed >= failures }
