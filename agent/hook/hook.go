// Package hook runs an operator's command at every change of leadership.
//
// It guarantees order, one run at a time of an election, a bounded queue and bounded
// runs: a command that takes too long is killed with its whole process group. An
// event that is outdated before its turn is skipped: of each election the newest
// event waits, and before it the end of a leadership, which is never skipped. The
// ends of this agent's own leaderships go first, then their starts, then the rest;
// and elections without their own command share a few places, so that the others
// don't wait for them, however many there are.
//
// A command that was run because this agent leads is killed as soon as that
// leadership ends, so that the run for the end need not wait. A guard, which is a
// separate process, kills it by the end of the lease, and every run by its limit,
// if this process is frozen, and at once if it dies. For root, commands that others
// could have written are refused, see Check.
//
// It does not guarantee that processes which a command left elsewhere (a service it
// started, a process in another group) stop, nor that the run for the end of a
// leadership has finished before another agent leads: it logs when that is missed.
// Nor are runs guarded between the end of a guard and the start of the next one,
// see keepGuard.
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
	"github.com/doyen-election/doyen/internal/boottime"
)

// Why a run was killed.
var (
	errTooLong = errors.New("it took too long")
	errOver    = errors.New("its event is outdated")
	errStopped = errors.New("the agent stops")
)

// Commands are what is run: an election's own command, else the one that
// election.Default has, or the others.
type Commands struct {
	Default string // empty: none
	Of      map[election.Name]string
	Others  string // of elections that are not in Of; empty: none
	// Limit bounds each run.
	Limit time.Duration
	// Guarded has runs guarded. The main function of this program must call Guard
	// then, when its first argument is GuardWord.
	Guarded bool
	// Ran, if not nil, is called before a command is started because this agent leads, and when
	// that run has ended and is not repeated. Several goroutines may call it at once.
	Ran func(name election.Name, term election.Term, finished bool)
}

// For returns the command of an election, empty if it has none.
func (c Commands) For(name election.Name) string {
	if own, ok := c.Of[name]; ok {
		return own
	}
	if name == election.Default {
		return c.Default
	}
	return c.Others
}

// named reports whether the configuration names the election.
func (c Commands) named(name election.Name) bool {
	_, ok := c.Of[name]
	return ok || name == election.Default
}

// Event is one change for which the command is run.
type Event struct {
	Election election.Name
	Event    election.Event // leading, following or none
	Leader   string         // name; empty if none
	Term     election.Term
	// Change is what the command reads, as JSON, from its standard input.
	Change api.Change
	// Stands, if not nil, is asked just before the run whether the event is still
	// true; if not, the run is skipped.
	Stands func() bool
	// Until, if not nil, returns the present deadline of the run; it is called several times
	// during the run. The guard ends a run at its deadline.
	Until func() election.Instant
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
	clock    func() election.Instant
	logger   *slog.Logger
	ctx      context.Context // of all runs
	cancel   context.CancelCauseFunc
	ended    chan struct{}

	mu      sync.Mutex
	waiting []Event // at most two of an election, see supersede
	running map[election.Name]*task
	shared  int // of running, the tasks of elections without their own hook setting, which share a few places
	closed  bool
	guard   *guard // nil if there is none
	keys    uint64 // how many were given to runs
}

// task is an event under way, and what kills its run.
type task struct {
	event  Event
	key    uint64 // by which the guard knows it
	ctx    context.Context
	kill   context.CancelCauseFunc
	cancel context.CancelFunc
	shares bool
	limit  election.Instant // when the run must end, whatever Until returns
	until  election.Instant // the deadline last sent to its guard
	group  int              // the run's process group, while its first process has not been waited for; else 0
	killed bool             // by its guard
	again  bool             // it is to be run once more
}

// Start starts a runner of `sh -c COMMAND`.
func Start(commands Commands, logger *slog.Logger) *Runner {
	r := &Runner{commands: commands, check: CheckAsRoot, clock: boottime.Now, logger: logger,
		ended: make(chan struct{}), running: map[election.Name]*task{}}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	if commands.Guarded {
		r.guard = r.newGuard()
		go r.keepGuard(r.guard)
	}
	return r
}

func (r *Runner) newGuard() *guard {
	g, err := startGuard()
	if err != nil {
		r.logger.Warn("hook is not guarded: if this agent is killed or frozen, nothing ends a run under way; starting its guard is tried again", "err", err)
		return nil
	}
	return g
}

// keepGuard starts another guard when one has ended, until the runner has, and
// reports the runs under way to it. Guards that end soon come after a pause.
func (r *Runner) keepGuard(g *guard) {
	pause := time.Duration(0)
	for {
		began := time.Now()
		if g != nil {
			<-g.ended
		}
		if time.Since(began) > longestPause {
			pause = 0
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.ended:
			timer.Stop()
		}
		if r.finished() {
			return
		}
		pause = min(max(time.Second, 2*pause), longestPause)
		if g = r.newGuard(); g != nil && !r.guardBy(g) {
			return
		}
	}
}

// longestPause bounds how long a runner waits before it starts another guard.
const longestPause = 10 * time.Second

// finished reports whether the runner has ended. Its guard ends just before.
func (r *Runner) finished() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasEnded()
}

// hasEnded is finished with the lock held.
func (r *Runner) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// guardBy has another guard take over, unless the runner has ended.
func (r *Runner) guardBy(g *guard) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasEnded() {
		g.close()
		return false
	}
	// The former one's socket is left to the garbage collector: a run that is being
	// started may use it.
	r.guard = g
	runs := 0
	for _, t := range r.running {
		if t.group > 0 {
			g.adopt(t.key, t.group, t.until)
			runs++
		}
	}
	r.logger.Warn("hook's guard has ended: another one was started, runs in between were not guarded", "runs", runs)
	return true
}

// Covers reports whether a change of the election runs a command. No runner
// covers nothing.
func (r *Runner) Covers(name election.Name) bool {
	return r != nil && r.commands.For(name) != ""
}

// Named returns the elections that have their own command, sorted.
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
	if t := r.running[e.Election]; t != nil && t.event.Event == election.Leading && e.Event != election.Leading {
		t.kill(errOver)
	}
	r.dispatch()
}

// supersede skips what the new event outdates of its election: any event that still
// waits to report a leader. An event that reports that nobody leads is only outdated
// by another one of that kind: it may be the end of a leadership, at which the
// command stops something. What waits for a skipped event then waits for the new
// one.
func (r *Runner) supersede(e *Event) {
	r.waiting = slices.DeleteFunc(r.waiting, func(old Event) bool {
		if old.Election != e.Election || old.Event == election.NoLeader && e.Event != election.NoLeader {
			return false
		}
		r.logger.Info("hook skipped: its event is outdated", "election", old.Election, "event", old.Event, "term", old.Term)
		e.Done = both(old.Done, e.Done)
		return true
	})
}

// watchOverrun logs once if the run for the end of a leadership has not finished by
// the time another agent may lead.
func (r *Runner) watchOverrun(e *Event) {
	if e.StopIn == 0 {
		return
	}
	logger := r.logger.With("election", e.Election, "event", e.Event, "term", e.Term)
	timer := time.AfterFunc(e.StopIn, func() {
		logger.Warn("hook is late: it has not finished ending a leadership whose lease has expired; another agent may lead by now")
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
	busy := len(r.running) > 0 || len(r.waiting) > 0
	r.dispatch()
	r.mu.Unlock()
	if busy {
		r.logger.Info("waiting for the hook to finish")
	}
	select {
	case <-r.ended:
	case <-ctx.Done():
	}
	r.cancel(errStopped)
	<-r.ended
}
