package keeper

import "time"

const never = int64(1<<63 - 1)

// watch judges whether the life is overdue. It reads no clock: its caller passes every instant, in nanoseconds.
type watch struct {
	next      int64         // the life has written that it will tick by then; never: the life is not being judged
	allowance time.Duration // how much later than next the tick may come
	due       int64         // when step has to be called next
	checks    int           // how many checks in a row were on time and found the life overdue
	silence   silence
}

// A life is killed after enoughChecks checks in a row that were on time and found it overdue. A late
// check does not count: the keeper was late itself, so perhaps the life could not run either.
const enoughChecks = 4

// step is called at due or later. next and allowance are what the life has written. It returns true if the life
// hangs: the allowance is used up, the keeper was on time throughout, and the life's threads did not wait for a
// processor. look returns the threads, or nil if the kernel does not show their waits.
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
	case now < w.due: // the keeper was woken for another reason
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

// thread is what the kernel shows of one thread of the life.
type thread struct {
	ran, waited time.Duration // how long it ran and waited for a processor; the kernel counts a wait only after its end
	wants       bool          // it runs or waits for a processor
}

// silence is how the life's threads spent the time in which the life was overdue.
type silence struct {
	since, looked int64 // when the threads were first and last checked
	threads       map[int]thread
	waited        time.Duration // for a processor, the sum of all threads
}

// add adds what has happened since the last check. It sums the waits of all threads: the agent's work passes
// from thread to thread, and each may have to wait.
func (s *silence) add(now int64, threads map[int]thread) {
	between := time.Duration(now - s.looked)
	for id, is := range threads {
		was, known := s.threads[id]
		waited := min(is.waited-was.waited, between)
		if known && was.wants && is.wants && is.ran == was.ran && waited == 0 {
			waited = between // the thread is still waiting
		}
		s.waited += waited
	}
	s.looked, s.threads = now, threads
}

// starved reports whether other processes had the processor while the life was overdue. Then the life may be
// silent without hanging.
func (s *silence) starved() bool {
	return s.threads != nil && s.waited >= time.Duration(s.looked-s.since)/2
}

const (
	// failures is how many short lives in a row make the next one wait. So many in a row that never ran are the
	// last.
	failures = 3
	// shortLife is how long a life must last so that it does not count as short.
	shortLife = 2 * time.Second
	// backOff is the first wait between short lives in a row, and maxBackOff the longest.
	backOff    = 100 * time.Millisecond
	maxBackOff = 5 * time.Second
	// maxPatience bounds the factor of a life's allowance. The factor doubles when a killed life may only have
	// been slow: the next one gets more time.
	maxPatience = 32
)

// lives counts how the lives have ended.
type lives struct {
	short    int // short lives in a row
	failed   int // lives in a row that ended before they ran
	ran      bool
	patience int // factor of the allowance; 0: it is 1
}

// ended counts the end of a life, and returns how long to wait before the next life.
func (l *lives) ended(lasted time.Duration, ran, slow bool) time.Duration {
	l.ran = l.ran || ran
	switch {
	case slow && lasted < time.Hour: // a life that hangs after a long time was not just slow
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

// hopeless reports whether no life can be started, so that the lineage has to end.
func (l *lives) hopeless() bool { return l.failed >= failures }
