// Package act runs what acts on a host beside its leader: hooks, at each change of leader, and
// health checks, which decide whether the host may lead. `doyen act` is this package.
//
// It is the agent's companion: a client of its socket that is sent who leads, and until when, and
// gives its receipt once what it has run for a leadership has ended and the hook has run with
// `none`. So the process that elects runs no command of an operator.
//
// It guarantees that a run for a leadership is killed before the lease can expire, by this process
// or by its guard, whichever of them, of the agent and of its keeper is frozen or dead; that the
// hook runs with `none` once the deadline has passed, if nobody prolongs it; and the order of the
// runs of package hook. It goes by level, not by edge: one that starts where its host leads runs
// the hook with `leading`. While the agent is away, what runs goes on under the deadlines that it
// has, and the agent's next life prolongs them.
//
// It does not guarantee that what a hook has set up is undone when this process is killed or
// frozen: the next one does that, and until then the agent keeps the term until the lease ends. Nor
// that a hook succeeds: a failure is a warning of the agent.
package act

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/hook"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

// Work is what is run.
type Work struct {
	Hooks  hook.Commands
	Checks map[election.Name]health.Check
	// Failures is after how many runs for one leadership that fail in a row the host hands over; 0:
	// it does not, and a run that failed is not repeated.
	Failures int
}

// Any reports whether there is something to run.
func (w Work) Any() bool { return w.Hooks.Any() || len(w.Checks) > 0 }

// Config is what Run works with.
type Config struct {
	Client *client.Client
	Work   Work
	// Reread returns the work by the configuration as it is now.
	Reread func() (Work, error)
	// Hangups ask for a reload.
	Hangups <-chan os.Signal
	Logger  *slog.Logger
}

const (
	// joinTimeout bounds one attempt to connect: a frozen agent's kernel accepts the connection.
	joinTimeout = 5 * time.Second
	firstRetry  = 5 * time.Millisecond
	lastRetry   = 500 * time.Millisecond
	// firstLines is how soon after the first connection the agent's lines have said what this host leads.
	firstLines = time.Second
	// taken is for how long another companion may have the place before that is an error: the one
	// that this process follows may just be dying.
	taken = 2 * time.Second
	// callTimeout bounds a receipt or a report.
	callTimeout = 5 * time.Second
)

// actor is one Run. Its loop owns what has no lock.
type actor struct {
	Config
	ctx    context.Context // of everything but the loop
	hooks  *hook.Runner
	checks *health.Checks

	calls     chan func()
	joins     chan joined
	lines     chan line
	candidacy *client.Candidacy // nil: not connected
	announced map[election.Name]announced
	verdicts  map[string]api.Check
	failed    map[string]string
	failures  map[election.Name]int
	repeats   map[election.Name]*time.Timer
	retry     time.Duration
	refused   time.Time // since when another companion has the place; zero: it has not
	complaint string
	stopping  bool
	dirty     bool // the agent may not have been notified of what changed here
	reported  api.Companion
	reporting bool
	receipts  sync.WaitGroup // those that are owed

	mu    sync.Mutex
	led   map[election.Name]lead
	since time.Time // when it was first connected; zero: it was not yet
}

// lead is a leadership of this host, as the agent's lines report it.
type lead struct {
	term  election.Term
	until election.Instant
	view  bool          // there is no quorum behind it
	lease time.Duration // the longest time that was ever left of it
}

// announced is the newest event of an election that the hook was given.
type announced struct {
	event  election.Event
	term   election.Term
	leader string
	change api.Change
}

type joined struct {
	candidacy *client.Candidacy
	err       error
}

type line struct {
	from  *client.Candidacy
	event api.CampaignEvent
	err   error
}

// Run acts until ctx ends. It then runs the hook with `none` where its host leads, and gives its
// receipts. It returns an error if another companion acts for this host, or if the agent refuses
// this user.
func Run(ctx context.Context, c Config) error {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	a := &actor{Config: c, ctx: life, calls: make(chan func()), joins: make(chan joined), lines: make(chan line),
		announced: map[election.Name]announced{}, verdicts: map[string]api.Check{}, failed: map[string]string{},
		failures: map[election.Name]int{}, repeats: map[election.Name]*time.Timer{}, led: map[election.Name]lead{}}
	owner, err := filepath.Abs(c.Client.Socket())
	if err != nil {
		owner = c.Client.Socket()
	}
	if n := guard.EndLeftovers(ctx, owner, c.Logger); n > 0 {
		c.Logger.Warn("ended what a doyen act before this one had left behind when it was killed with its guards", "processes", n)
	}
	pool := guard.NewPool(os.Environ(), guard.Nice(), owner, c.Logger.With("part", "guard"))
	a.hooks = hook.New(c.Work.Hooks, pool, c.Logger.With("part", "hook"))
	a.checks = health.New(life, pool, hook.CheckAsRoot, a.mayLead, a.judged, c.Logger.With("part", "check"))
	a.setChecks()
	err = a.loop(ctx)
	cancel()
	a.checks.Wait()
	return err
}

// loop handles one event after the other.
func (a *actor) loop(ctx context.Context) error {
	a.join()
	asked, ended := ctx.Done(), make(chan struct{})
	deadline := time.NewTimer(time.Hour)
	defer deadline.Stop()
	for {
		a.expire(boottime.Now())
		a.report()
		deadline.Reset(a.next(boottime.Now()))
		select {
		case <-asked:
			asked = nil
			a.stop(ended)
		case <-ended:
			if a.candidacy != nil {
				a.candidacy.Close()
			}
			return nil
		case <-a.Hangups:
			a.reload()
		case f := <-a.calls:
			f()
		case j := <-a.joins:
			if err := a.connect(j); err != nil {
				a.hooks.Close(a.ctx)
				return err
			}
		case l := <-a.lines:
			if l.from == a.candidacy {
				a.hear(l)
			}
		case <-deadline.C:
		}
	}
}

// call has the loop run f.
func (a *actor) call(f func()) {
	select {
	case a.calls <- f:
	case <-a.ctx.Done():
	}
}

// stop ends what acts here, and closes ended once it has ended.
func (a *actor) stop(ended chan<- struct{}) {
	a.stopping = true
	for name, l := range a.led {
		a.end(name, l, nobody(name, l.term, whyStops), whyStops, 0)
	}
	go func() {
		limit, done := context.WithTimeout(context.Background(), hook.Limit)
		defer done()
		a.hooks.Close(limit)
		a.receipts.Wait() // each has its limit
		close(ended)
	}()
}

const (
	whyStops   = "doyen act stops"
	whyExpired = "the agent did not prolong the deadline"
)

// join connects to the agent, after a wait that grows from failure to failure.
func (a *actor) join() {
	reports := a.reports()
	a.reported = reports
	reports.Holds = map[string]uint64{}
	for name, l := range a.led {
		reports.Holds[string(name)] = uint64(l.term)
	}
	wait := a.retry
	a.retry = min(max(firstRetry, 2*a.retry), lastRetry)
	a.dirty = false
	go func() {
		select {
		case <-time.After(wait):
		case <-a.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(a.ctx, joinTimeout)
		defer cancel()
		k, err := a.Client.Accompany(ctx, "doyen act", reports)
		select {
		case a.joins <- joined{k, err}:
		case <-a.ctx.Done():
			if err == nil {
				k.Close()
			}
		}
	}()
}

// connect takes the outcome of an attempt to connect.
func (a *actor) connect(j joined) error {
	if j.err != nil {
		if refusal, ok := errors.AsType[*client.APIError](j.err); ok && refusal.Status < 500 {
			if refusal.Code != api.CodeInUse {
				return j.err
			}
			if a.refused.IsZero() {
				a.refused = time.Now()
			}
			if time.Since(a.refused) >= taken {
				return j.err
			}
		}
		if text := j.err.Error(); text != a.complaint {
			a.complaint = text
			a.Logger.Info("not connected to the agent; trying again", "err", text)
		}
		a.join()
		return nil
	}
	a.Logger.Info("connected to the agent")
	a.candidacy, a.retry, a.refused, a.complaint = j.candidacy, 0, time.Time{}, ""
	a.mu.Lock()
	if a.since.IsZero() {
		a.since = time.Now()
	}
	a.mu.Unlock()
	a.reload() // the agent may have read its configuration again, or begun with another one, before it could notify this process
	go a.listen(j.candidacy)
	return nil
}

func (a *actor) listen(from *client.Candidacy) {
	for {
		event, err := from.Next(a.ctx)
		select {
		case a.lines <- line{from, event, err}:
		case <-a.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// hear handles a line of the agent, or the end of the lines: the agent may be back in a moment.
func (a *actor) hear(l line) {
	e, name := l.event, election.Name(l.event.Election)
	switch {
	case l.err != nil:
		a.candidacy.Close()
		a.candidacy = nil
		for name, l := range a.led {
			if l.view { // nothing but the connection says that this host leads
				a.end(name, l, nobody(name, l.term, whyExpired), "", 0)
			}
		}
		a.join()
	case e.Type == api.CampaignElected, e.Type == api.CampaignRenewed:
		a.lead(name, e)
	case e.Type == api.CampaignRevoked:
		a.revoked(name, e)
	case e.Type == api.CampaignChanged && e.Change != nil:
		if l, led := a.led[name]; led { // the agent has begun without a record of this
			a.end(name, l, *e.Change, "", 0)
		}
		a.announce(name, *e.Change)
	case e.Type == api.CampaignReloaded:
		a.reload()
	}
}
