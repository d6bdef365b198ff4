package hook

import (
	"context"
	"slices"

	"github.com/doyen-election/doyen/election"
)

const (
	// maxWaiting is how many events may wait in total: two for each election that an agent can have
	// at once.
	maxWaiting = 2048
	// ownPlaces is how many runs may be in progress for elections that the configuration names, and sharedPlaces
	// is how many for all others. Any user that may be a candidate can create elections: these must not delay
	// the named ones.
	ownPlaces    = 8
	sharedPlaces = 4
)

// importance is lowest for the event that runs first: the end of this agent's leadership, since the term is
// released only after that run.
func (e Event) importance() int {
	switch {
	case e.StopIn != 0:
		return 0
	case e.Event == election.Leading:
		return 1
	}
	return 2
}

// dispatch starts the events that may run. The caller holds the lock.
func (r *Runner) dispatch() {
	for {
		i := r.nextUp()
		if i < 0 {
			break
		}
		e := r.waiting[i]
		r.waiting = slices.Delete(r.waiting, i, i+1)
		t := &task{event: e, shares: !r.commands.Load().named(e.Election)}
		ctx, kill := context.WithCancelCause(r.ctx)
		t.kill = kill
		t.ctx, t.cancel = context.WithTimeoutCause(ctx, r.commands.Load().Limit, errTooLong)
		r.running[e.Election] = t
		if t.shares {
			r.shared++
		}
		go func() {
			r.run(t)
			r.finish(t)
		}()
	}
	if r.closed && len(r.waiting) == 0 && len(r.running) == 0 {
		select {
		case <-r.ended:
		default:
			close(r.ended)
		}
	}
}

// nextUp returns the index of the waiting event that runs next; -1: no event may run. An election's oldest
// event comes first, and waits while a run of that election is in progress.
func (r *Runner) nextUp() int {
	best := -1
	for i, e := range r.waiting {
		beaten := best >= 0 && r.waiting[best].importance() <= e.importance()
		if r.running[e.Election] != nil || !r.hasPlace(e.Election) || beaten {
			continue
		}
		if !slices.ContainsFunc(r.waiting[:i], func(o Event) bool { return o.Election == e.Election }) {
			best = i
		}
	}
	return best
}

func (r *Runner) hasPlace(name election.Name) bool {
	if r.commands.Load().named(name) {
		return len(r.running)-r.shared < ownPlaces
	}
	return r.shared < sharedPlaces
}

// finish ends a task, and calls its Done before the next task of its election starts. A task to be repeated
// waits again instead, unless a newer event of its election waits.
func (r *Runner) finish(t *task) {
	t.cancel()
	t.kill(nil)
	r.mu.Lock()
	newer := slices.ContainsFunc(r.waiting, func(e Event) bool { return e.Election == t.event.Election })
	again := t.again && !newer && !r.closed
	if again {
		r.waiting = append(r.waiting, t.event)
	}
	r.mu.Unlock()
	if t.event.Done != nil && !again {
		t.event.Done()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, t.event.Election)
	if t.shares {
		r.shared--
	}
	r.dispatch()
}

// makeRoom drops an event when too many wait: the oldest of an election that is not named, or else the oldest
// of all. It never drops the end of this agent's own leadership. If elections come and go faster than the
// command runs, most of them have ended before their turn.
func (r *Runner) makeRoom() {
	if len(r.waiting) < maxWaiting {
		return
	}
	i := slices.IndexFunc(r.waiting, func(e Event) bool { return e.StopIn == 0 && !r.commands.Load().named(e.Election) })
	if i < 0 {
		i = slices.IndexFunc(r.waiting, func(e Event) bool { return e.StopIn == 0 })
	}
	if i < 0 {
		return // only ends of this agent's leaderships wait, and these are bounded
	}
	left := r.waiting[i]
	r.waiting = slices.Delete(r.waiting, i, i+1)
	r.logger.Warn("hook skipped: the command is too slow for so many elections", "election", left.Election, "event", left.Event, "term", left.Term)
	if left.Done != nil {
		go left.Done()
	}
}
