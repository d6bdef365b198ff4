// Package act runs an operator's commands beside the agent of a host: hooks, at each change of leader,
// and health checks, which decide whether the host may lead. `doyen act` runs this package.
//
// It is the agent's companion, a client of the agent's socket. The agent sends it who leads, and until
// when. The companion gives its receipt once everything that it has run for a leadership has ended and
// the hook has run with `none`. So the process that elects never runs an operator's command.
//
// It guarantees that a run for a leadership is killed before the lease can expire. This process and its guard
// each see to that, even if the other one, the agent or the keeper is frozen or dead. If nobody extends the
// deadline, the hook runs with `none` once it has passed. The runs keep the order that package hook guarantees.
// A process that starts while its host leads runs the hook with `leading`, even though it did not see the
// change. While the agent is away, runs continue under the deadlines that they have. The agent's next life
// extends them.
//
// It does not guarantee that what a hook has set up is undone when this process is killed or frozen. The next
// `doyen act` undoes it. Until then the agent does not release the term, so the lease has to end. A hook may
// also fail: then the agent warns.
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

// Work is what an actor has to run.
type Work struct {
	Hooks  hook.Commands
	Checks map[election.Name]health.Check
	// Failures is how many runs in a row must fail in one leadership before this host hands over;
	// 0: it never hands over for that reason, and repeats no failed run.
	Failures int
}

// Any reports whether there is something to run.
func (w Work) Any() bool { return w.Hooks.Any() || len(w.Checks) > 0 }

// Config is what Run needs to work.
type Config struct {
	Client *client.Client
	Work   Work
	// Reread returns the work according to the present configuration.
	Reread func() (Work, error)
	// Hangups are signals that ask for a reload.
	Hangups <-chan os.Signal
	Logger  *slog.Logger
}

const (
	// joinTimeout bounds one attempt to connect: the kernel accepts a connection even if the agent is frozen.
	joinTimeout = 5 * time.Second
	firstRetry  = 5 * time.Millisecond
	lastRetry   = 500 * time.Millisecond
	// firstLines is how long the agent, after the first connection, may take to report what this host leads.
	firstLines = time.Second
	// taken is how long another companion may be connected instead before that is an error: perhaps it is this
	// process's predecessor, which is just ending.
	taken = 2 * time.Second
	// callTimeout bounds a receipt or a report.
	callTimeout = 5 * time.Second
)

// actor is one call of Run. Only its loop uses the fields from candidacy to reporting.
type actor struct {
	Config
	ctx    context.Context // the context of everything but the loop
	hooks  *hook.Runner
	checks *health.Checks

	calls     chan func()
	candidacy *client.Candidacy // nil: not connected
	announced map[election.Name]announced
	verdicts  map[string]api.Check
	failed    map[string]string
	failures  map[election.Name]int
	repeats   map[election.Name]*time.Timer
	retry     time.Duration
	refused   time.Time // since when another companion has been connected instead; zero: none is
	complaint string
	stopping  bool
	fault     error // why Run can't go on
	dirty     bool  // something here may have changed since the last report to the agent
	reported  api.Companion
	reporting bool
	receipts  sync.WaitGroup // the receipts that the agent still has to get

	mu    sync.Mutex
	led   map[election.Name]lead
	since time.Time // when it first connected to the agent; zero: it has not yet
}

// lead is a leadership of this host, as the agent's lines report it.
type lead struct {
	term  election.Term
	until election.Instant
	view  bool          // the agents elect without a quorum
	lease time.Duration // the longest time that was ever left of the lease
}

// announced is the newest event of an election for which the hook was started.
type announced struct {
	event  election.Event
	term   election.Term
	leader string
	change api.Change
}

// Run acts until ctx ends. It then runs the hook with `none` in each election that its host leads,
// and gives the receipts. It returns an error if another companion acts for this host, or if the
// agent refuses this process for another reason.
func Run(ctx context.Context, c Config) error {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	a := &actor{Config: c, ctx: life, calls: make(chan func()),
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

// loop handles one event after another.
func (a *actor) loop(ctx context.Context) error {
	a.join()
	asked, ended := ctx.Done(), make(chan struct{})
	for a.fault == nil {
		a.expire(boottime.Now())
		a.report()
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
		case <-time.After(a.next(boottime.Now())):
		}
	}
	a.hooks.Close(a.ctx)
	return a.fault
}

// call makes the loop run f.
func (a *actor) call(f func()) {
	select {
	case a.calls <- f:
	case <-a.ctx.Done():
	}
}

// stop ends everything that acts here, and then closes ended.
func (a *actor) stop(ended chan<- struct{}) {
	a.stopping = true
	for name, l := range a.led {
		a.end(name, l, nobody(name, l.term, whyStops), whyStops, 0)
	}
	go func() {
		limit, done := context.WithTimeout(context.Background(), hook.Limit)
		defer done()
		a.hooks.Close(limit)
		a.receipts.Wait() // callTimeout bounds each receipt
		close(ended)
	}()
}

const (
	whyStops   = "doyen act stops"
	whyExpired = "the agent did not prolong the deadline"
)

// join starts an attempt to connect to the agent, after a wait that grows with each failure.
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
		case a.calls <- func() { a.fault = a.connect(k, err) }:
		case <-a.ctx.Done():
			if err == nil {
				k.Close()
			}
		}
	}()
}

// connect handles the outcome of an attempt to connect.
func (a *actor) connect(k *client.Candidacy, err error) error {
	if err != nil {
		if refusal, ok := errors.AsType[*client.APIError](err); ok && refusal.Status < 500 {
			if refusal.Code != api.CodeInUse {
				return err
			}
			if a.refused.IsZero() {
				a.refused = time.Now()
			}
			if time.Since(a.refused) >= taken {
				return err
			}
		}
		if text := err.Error(); text != a.complaint {
			a.complaint = text
			a.Logger.Info("not connected to the agent; trying again", "err", text)
		}
		a.join()
		return nil
	}
	a.Logger.Info("connected to the agent")
	a.candidacy, a.retry, a.refused, a.complaint = k, 0, time.Time{}, ""
	a.mu.Lock()
	if a.since.IsZero() {
		a.since = time.Now()
	}
	a.mu.Unlock()
	a.reload() // the agent may have reloaded, or started again with another configuration, while this process was not connected
	go a.listen(k)
	return nil
}

func (a *actor) listen(from *client.Candidacy) {
	for {
		event, err := from.Next(a.ctx)
		a.call(func() {
			if from == a.candidacy {
				a.hear(event, err)
			}
		})
		if err != nil {
			return
		}
	}
}

// hear handles a line of the agent, or the end of the lines. After the end of the lines the agent may soon be
// back.
func (a *actor) hear(e api.CampaignEvent, err error) {
	name := election.Name(e.Election)
	switch {
	case err != nil:
		a.candidacy.Close()
		a.candidacy = nil
		for name, l := range a.led {
			if l.view { // without a quorum, only the connection shows that this host leads
				a.end(name, l, nobody(name, l.term, whyExpired), "", 0)
			}
		}
		a.join()
	case e.Type == api.CampaignElected, e.Type == api.CampaignRenewed:
		a.lead(name, e)
	case e.Type == api.CampaignRevoked:
		a.revoked(name, e)
	case e.Type == api.CampaignChanged && e.Change != nil:
		if l, led := a.led[name]; led { // the agent started again without a record of this leadership
			a.end(name, l, *e.Change, "", 0)
		}
		a.announce(name, *e.Change)
	case e.Type == api.CampaignReloaded:
		a.reload()
	}
}
