// Package hook runs an operator's command at every change of leadership.
//
// It guarantees order, one run at a time for each election, a bounded queue and bounded runs: a command that
// takes too long is killed with its whole process group. An event that is outdated before it runs is skipped.
// For each election at most two events wait: the newest, and before it perhaps the end of a leadership, which
// only another such end replaces. The ends of this agent's own leaderships run first, then their starts, then all other
// events. Elections that the configuration does not name share a few places, so that the named elections never
// wait for them.
//
// A run for a leadership of this agent is killed as soon as that leadership ends, so that the run for the end
// does not have to wait. Each run has a guard (package guard), which kills it by the end of the lease and no
// later than the run's limit, even if this process is frozen. If this process dies, the guard kills the run at
// once. For root, the package refuses commands that others could have written, see Check.
//
// It does not guarantee that a service which a command has started stops: if a run ends by itself, what it
// leaves running goes on. The run for the end of a leadership may also finish only after another agent leads.
// That is logged.
package hook

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
)

// The reasons why a run was killed.
var (
	errTooLong = errors.New("it took too long")
	errOver    = errors.New("its event is outdated")
	errStopped = errors.New("the agent stops")
)

// Commands are the commands of elections. Of an election that is not in Of, it is Default for election.Default,
// else Others.
type Commands struct {
	Default string // empty: no command
	Of      map[election.Name]string
	Others  string // for elections that are not in Of; empty: no command
	// Limit bounds each run.
	Limit time.Duration
}

// Any reports whether there is a command at all.
func (c Commands) Any() bool { return c.Default != "" || c.Others != "" || len(c.Of) > 0 }

// For returns the command of an election; empty: it has none.
func (c Commands) For(name election.Name) string {
	if own, ok := c.Of[name]; ok {
		return own
	}
	if name == election.Default {
		return c.Default
	}
	return c.Others
}

// Elections returns the elections that have a command; api.EveryElection means those that the
// configuration does not name.
func (c Commands) Elections() []election.Name {
	names := slices.Sorted(maps.Keys(c.Of))
	if c.Default != "" && c.Of[election.Default] == "" {
		names = append(names, election.Default)
	}
	if c.Others != "" {
		names = append(names, api.EveryElection)
	}
	return names
}

// named reports whether the configuration names the election.
func (c Commands) named(name election.Name) bool {
	_, ok := c.Of[name]
	return ok || name == election.Default
}

// Limit is how long one run of an agent's hook may take.
const Limit = 10 * time.Second

// Event is one change for which the command is run.
type Event struct {
	Election election.Name
	Event    election.Event // leading, following or none
	Leader   string         // name of the leader; empty: there is none
	Term     election.Term
	// Change is written as JSON to the command's standard input.
	Change api.Change
	// Command, if not empty, is run even if the configuration now has another command: what a command has set up
	// has to be undone by the same command.
	Command string
	// Stands, if not nil, is called just before the run and reports whether the event is still
	// true. If not, the run is skipped.
	Stands func() bool
	// Until, if not nil, returns the run's present deadline, at which the guard kills the run. It is called
	// several times during the run.
	Until func() election.Instant
	// StopIn, if not 0, means that the event ends a leadership. After this time the leadership has certainly
	// expired, so another agent may lead.
	StopIn time.Duration
	// Result, if not nil, is called when the command has run for this event. The error is nil if it
	// succeeded.
	Result func(error)
	// Done, if not nil, is called once: when the command has run or failed for this event or a later one of the
	// election, or was given up.
	Done func()

	repeated bool // the event runs again, because a guard has killed its run
}

// Runner runs the commands. Its methods may be called from any goroutine.
type Runner struct {
	commands atomic.Pointer[Commands] // replaced as a whole, never changed
	pool     *guard.Pool
	logger   *slog.Logger
	ctx      context.Context // the context of all runs
	cancel   context.CancelCauseFunc
	ended    chan struct{}

	mu      sync.Mutex
	waiting []Event // at most two for each election and command, see supersede
	running map[election.Name]*task
	shared  int // running tasks of elections that the configuration does not name, which share a few places
	closed  bool
}

// task is an event in progress, with the function that kills its run.
type task struct {
	event  Event
	ctx    context.Context
	kill   context.CancelCauseFunc
	cancel context.CancelFunc
	shares bool
	limit  election.Instant // when the run must end, even if Until returns a later time
	again  bool             // the run has to be repeated
}

// New returns a runner that runs the commands in the pool, each by `sh -c COMMAND`.
func New(commands Commands, pool *guard.Pool, logger *slog.Logger) *Runner {
	r := &Runner{pool: pool, logger: logger, ended: make(chan struct{}), running: map[election.Name]*task{}}
	r.commands.Store(&commands)
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// Command returns the command of an election; empty: it has none.
func (r *Runner) Command(name election.Name) string { return r.commands.Load().For(name) }

// Commands returns the present commands.
func (r *Runner) Commands() Commands { return *r.commands.Load() }

// Configure replaces the commands of elections. Runs in progress go on.
func (r *Runner) Configure(c Commands) {
	c.Limit = r.commands.Load().Limit
	r.commands.Store(&c)
}

// Enqueue adds an event. It never blocks. If the event's election has no command, the run does nothing.
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

// supersede skips the election's waiting events that the new event outdates: all that report a leader. An event
// that no agent leads may be the end of a leadership, at which the command stops something. Only another such
// event outdates it. The Done of a skipped event is called together with the new event's Done.
func (r *Runner) supersede(e *Event) {
	r.waiting = slices.DeleteFunc(r.waiting, func(old Event) bool {
		undoes := old.Command != "" && old.Command != cmp.Or(e.Command, r.Command(e.Election)) // the old event has to undo what another command has set up
		if old.Election != e.Election || old.Event == election.NoLeader && e.Event != election.NoLeader || undoes {
			return false
		}
		r.logger.Info("hook skipped: its event is outdated", "election", old.Election, "event", old.Event, "term", old.Term)
		e.Done = both(old.Done, e.Done)
		return true
	})
}

// watchOverrun logs, once, if the run for the end of a leadership has not finished when another
// agent may lead.
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
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func() { a(); b() }
}

// Close lets the waiting events run until ctx ends, and then kills the runs.
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
