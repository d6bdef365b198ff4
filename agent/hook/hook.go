// Package hook runs an operator's command at every change of leadership.
//
// It guarantees order, one run at a time, a bounded queue and a bounded run:
// a command that takes too long is killed with its whole process group. What is
// outdated before its turn came is left out: of each election the newest event
// waits, and before it the end of a leadership, which is never left out. A
// command that was told this agent leads is killed as soon as that leadership
// ends, so that the run that tells the end is not kept waiting. One that is
// still running when the process dies is killed with it. As root, what others
// could have written to is not run, see Check.
//
// It does not guarantee that what a command left running elsewhere (a service
// it started, a process in a group of its own) stops, nor that a command which
// is told the end of a leadership is done with it before another agent leads:
// it says so in the log when that is missed.
package hook

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// Why a run was killed.
var (
	errTooLong = errors.New("it took too long")
	errOver    = errors.New("what it was told is over")
	errStopped = errors.New("the agent stops")
)

// Commands are what is run: an election's own command, else the one for all.
type Commands struct {
	All string // empty: none
	Of  map[election.Name]string
}

// For returns the command of an election, empty if it has none.
func (c Commands) For(name election.Name) string {
	if own, ok := c.Of[name]; ok {
		return own
	}
	return c.All
}

// Event is one change to tell the command.
type Event struct {
	Election election.Name
	Event    election.Event // leading, following or none
	Leader   string         // name; empty if none
	Term     election.Term
	// Change is what the command reads, as JSON, from its standard input.
	Change api.Change
	// Stands, if not nil, tells just before the run whether the event is still
	// true; one that is not is left out.
	Stands func() bool
	// StopIn, if not 0, is how much later than now the leadership that this event
	// ends is certain to be over: another agent may lead from then on.
	StopIn time.Duration
	// Done, if not nil, is called once after the command has run for this event
	// or a later one of the election, or failed, or was given up.
	Done func()
}

// Runner runs the commands. Its methods may be called from any goroutine.
type Runner struct {
	commands Commands
	check    func(command string) error
	limit    time.Duration
	logger   *slog.Logger

	guard  *guard // owned by the loop; nil if there is none
	wake   chan struct{}
	ended  chan struct{}
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	waiting []Event // at most two of an election, see supersede
	closed  bool
	current Event // being run
	kill    context.CancelCauseFunc
}

// Start starts a runner of `sh -c COMMAND`; limit bounds each run.
func Start(commands Commands, limit time.Duration, logger *slog.Logger) *Runner {
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &Runner{
		commands: commands, check: CheckAsRoot, limit: limit, logger: logger,
		wake: make(chan struct{}, 1), ended: make(chan struct{}), cancel: cancel,
	}
	go r.loop(ctx)
	return r
}

// Covers reports whether a change of the election runs a command. No runner
// covers nothing.
func (r *Runner) Covers(name election.Name) bool {
	return r != nil && r.commands.For(name) != ""
}

// Named returns the elections that have a command of their own, sorted.
func (r *Runner) Named() []election.Name {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.commands.Of))
}

// Enqueue hands over an event of an election that is covered; it never blocks.
func (r *Runner) Enqueue(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		if e.Done != nil {
			go e.Done()
		}
		return
	}
	r.supersede(&e)
	r.makeRoom()
	r.watchOverrun(&e)
	r.waiting = append(r.waiting, e)
	if r.kill != nil && r.current.Election == e.Election && r.current.Event == election.Leading && e.Event != election.Leading {
		r.kill(errOver)
	}
	r.rouse()
}

func (r *Runner) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// supersede leaves out what the new event outdates of its election: whatever
// still waits to tell who leads. What waits to tell that nobody does is only
// outdated by the same word: it may be the end of a leadership, on which the
// command stops something. Whoever waits for an event that is left out waits
// for the new one.
func (r *Runner) supersede(e *Event) {
	r.waiting = slices.DeleteFunc(r.waiting, func(old Event) bool {
		if old.Election != e.Election || old.Event == election.NoLeader && e.Event != election.NoLeader {
			return false
		}
		r.logger.Info("hook left out: what it would be told is over", "election", old.Election, "event", old.Event, "term", old.Term)
		e.Done = both(old.Done, e.Done)
		return true
	})
}

// maxWaiting bounds what waits over all elections: two events of each that an
// agent holds at once.
const maxWaiting = 2048

// makeRoom leaves out the oldest event when too many wait, but never the end of
// this agent's own leadership: of elections that come and go faster than the
// command runs, most are gone when their turn comes.
func (r *Runner) makeRoom() {
	if len(r.waiting) < maxWaiting {
		return
	}
	i := slices.IndexFunc(r.waiting, func(e Event) bool { return e.StopIn == 0 })
	if i < 0 {
		return // as many as this agent leads, which is bounded
	}
	left := r.waiting[i]
	r.waiting = slices.Delete(r.waiting, i, i+1)
	r.logger.Warn("hook left out: the command is too slow for so many elections", "election", left.Election, "event", left.Event, "term", left.Term)
	if left.Done != nil {
		go left.Done()
	}
}

// watchOverrun has it logged, once, if the command has not been told of a
// leadership's end, and finished, by the time another agent may lead.
func (r *Runner) watchOverrun(e *Event) {
	if e.StopIn == 0 {
		return
	}
	logger := r.logger.With("election", e.Election, "event", e.Event, "term", e.Term)
	timer := time.AfterFunc(e.StopIn, func() {
		logger.Warn("hook is late: it has not finished ending a leadership whose lease is over; another agent may lead by now")
	})
	e.Done = both(func() { timer.Stop() }, e.Done)
}

func both(a, b func()) func() {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func() { a(); b() }
}

// Close lets what is waiting run until ctx ends, then kills it.
func (r *Runner) Close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	busy := r.kill != nil || len(r.waiting) > 0
	r.mu.Unlock()
	if busy {
		r.logger.Info("waiting for the hook to finish")
	}
	r.rouse()
	select {
	case <-r.ended:
	case <-ctx.Done():
	}
	r.cancel(errStopped)
	<-r.ended
}

func (r *Runner) loop(ctx context.Context) {
	defer close(r.ended)
	var err error
	if r.guard, err = startGuard(); err != nil {
		r.logger.Warn("hook is not guarded: should this agent be killed, a run under way goes on", "err", err)
	}
	defer r.guard.close()
	for {
		t, more := r.next(ctx)
		if !more {
			return
		}
		if t == nil {
			<-r.wake
			continue
		}
		r.run(t.ctx, t.event)
		r.finish(t)
	}
}

// task is an event under way, and what kills its run.
type task struct {
	event  Event
	ctx    context.Context
	cancel context.CancelFunc
}

// next takes the oldest event; nil if none waits, false if none will come. From
// then on the event can be killed: there is no moment at which it neither waits
// nor runs.
func (r *Runner) next(ctx context.Context) (*task, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil, !r.closed
	}
	t := &task{event: r.waiting[0]}
	r.waiting = slices.Delete(r.waiting, 0, 1)
	ctx, r.kill = context.WithCancelCause(ctx)
	t.ctx, t.cancel = context.WithTimeoutCause(ctx, r.limit, errTooLong)
	r.current = t.event
	return t, true
}

func (r *Runner) finish(t *task) {
	t.cancel()
	r.mu.Lock()
	r.kill(nil)
	r.current, r.kill = Event{}, nil
	r.mu.Unlock()
	if t.event.Done != nil {
		t.event.Done()
	}
}
