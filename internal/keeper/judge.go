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
	silence   silence
}

// A life is killed after this many checks in a row that were on time: a keeper that was late
// can't know whether the life could run meanwhile.
const enoughChecks = 4

// step is called at due, or later, with what the life has written by then. It returns true if
// the life hangs: the life then had its allowance, this keeper ran on time throughout, and the
// life's threads did not wait for a processor. look shows them; nil: that can't be known.
func (w *watch) step(now, next int64, allowance time.Duration, look func() map[int]thread) (hangs bool) {
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
		if w.checks == 0 {
			w.silence = silence{since: now, looked: now}
		}
		w.silence.add(now, look())
		w.checks++
		w.due = now + part
	}
	w.next, w.allowance = next, allowance
	return w.checks >= enoughChecks && !w.silence.starved()
}

// thread is what the kernel knows of one thread of the life.
type thread struct {
	ran, waited time.Duration // with a processor; waiting for one, without a wait that has not ended
	wants       bool          // it runs, or waits for a processor
}

// silence is what a life's threads did while the life was overdue.
type silence struct {
	since, looked int64 // the first and the last look
	threads       map[int]thread
	waited        time.Duration // of all threads, for a processor
}

// add adds what has happened since the last look. The waits of all threads count together: what
// the agent has to do passes from thread to thread, and each of them may have to wait.
func (s *silence) add(now int64, threads map[int]thread) {
	between := time.Duration(now - s.looked)
	for id, is := range threads {
		was, known := s.threads[id]
		waited := min(is.waited-was.waited, between)
		if known && was.wants && is.wants && is.ran == was.ran && waited == 0 {
			waited = between // it waits still, and the kernel counts a wait when it ends
		}
		s.waited += waited
	}
	s.looked, s.threads = now, threads
}

// starved reports whether others had the processor while the life was silent: then its silence
// proves nothing.
func (s *silence) starved() bool {
	return s.threads != nil && s.waited >= time.Duration(s.looked-s.since)/2
}

const (
	// failures is how many lives in a row may end before they run; then the lineage is given up.
	failures = 3
	// shortLife is how long a life must last for the next one to be started at once.
	shortLife = 2 * time.Second
	// backOff is the first wait when short lives follow each other, and maxBackOff the longest.
	backOff    = 100 * time.Millisecond
	maxBackOff = 5 * time.Second
	// maxPatience bounds the factor of a life's allowance. The factor doubles when a life was killed
	// that may only have been slow: to kill the next one as early would help nobody.
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
