package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

type Options struct {
	Poll  time.Duration // the time between polls of an agent; 0: no polls
	Retry time.Duration // see observe.Options
	// OnFault, if not nil, is called when a fault begins, and again when it has ended.
	OnFault func(f observe.Fault, over bool)
}

type Lab struct {
	Cluster *hosts.Cluster

	o       Options
	c       hosts.Config
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	seen     *observe.Elections
	followed []string // the elections that are followed
	exits    []Exit
	expected map[string]bool // hosts whose process a fault is about to end
	moved    chan struct{}   // closed and replaced whenever something was seen
	programs map[string]*Program
	faults   []observe.Fault
	began    election.Instant
	wall     time.Time
}

type Exit struct {
	hosts.Exit
	Expected bool // a fault ended the process
}

// New lays out a cluster and follows its default election. It starts no agent. The
// caller must Close it.
func New(ctx context.Context, c hosts.Config, o Options) (*Lab, error) {
	l := &Lab{o: o, c: c, moved: make(chan struct{}), programs: map[string]*Program{}, expected: map[string]bool{}, began: boottime.Now(), wall: time.Now().UTC()}
	l.ctx, l.stop = context.WithCancel(ctx)
	c.OnExit = l.Exited
	var err error
	if l.Cluster, err = hosts.New(c); err != nil {
		l.stop()
		return nil, err
	}
	var lease time.Duration // 0 without quorum; read from a host, since Config.Adjust may have changed it
	if first := l.Cluster.Hosts()[0].Config(); first.Quorum {
		lease = first.Lease
	}
	l.seen = observe.NewElections(lease)
	for _, h := range l.Cluster.Hosts() {
		l.seen.Started(h.Name(), boottime.Now())
	}
	l.Follow(string(election.Default))
	return l, nil
}

func (l *Lab) Exited(e hosts.Exit) {
	l.change(func() {
		l.exits = append(l.exits, Exit{e, l.expected[e.Host]})
		delete(l.expected, e.Host)
		l.seen.Exited(e.Host, e.At)
	})
}

// Unwatch stops watching the agents and leaves them running.
func (l *Lab) Unwatch() {
	l.stop()
	l.running.Wait()
}

// Close stops watching and ends the programs and the agents. The agents have until the end of
// ctx to end by themselves.
func (l *Lab) Close(ctx context.Context) error {
	l.stop()
	for _, h := range l.Cluster.Hosts() {
		l.expect(hosts.Terminate(), h, true)
	}
	for _, p := range l.Programs() {
		p.End()
	}
	err := l.Cluster.Close(ctx)
	l.running.Wait()
	return errors.Join(err, l.awaitPrograms())
}

// Kill is Close without time for the agents to end by themselves.
func (l *Lab) Kill() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return l.Close(now)
}

func (l *Lab) Follow(name string) {
	l.mu.Lock()
	known := slices.Contains(l.followed, name)
	if !known {
		l.followed = append(l.followed, name)
	}
	l.mu.Unlock()
	if known {
		return
	}
	sources := each.Of(l.Cluster.Hosts(), func(h *hosts.Host) observe.Source {
		return observe.Source{Agent: h.Name(), Socket: h.Config().Socket}
	})
	o := observe.Options{Sources: sources, Election: name, Poll: l.o.Poll, Retry: l.o.Retry}
	l.running.Go(func() { observe.Follow(l.ctx, o, l.Apply) })
}

// Apply records what an agent reported. It translates instants to the machine's clock.
func (l *Lab) Apply(e observe.Event) {
	l.change(func() {
		switch v := e.(type) {
		case observe.Changed:
			h, _ := l.Cluster.Host(v.Agent)
			v.Change.BoottimeNS = int64(h.Real(election.Instant(v.Change.BoottimeNS)))
			if s := v.Change.Snapshot; s != nil && s.ValidUntilBoottimeNS != 0 {
				s.ValidUntilBoottimeNS = int64(h.Real(election.Instant(s.ValidUntilBoottimeNS)))
			}
			e = v
		case observe.Polled:
			h, _ := l.Cluster.Host(v.Agent)
			if v.Election.ValidUntilBoottimeNS != 0 {
				v.Election.ValidUntilBoottimeNS = int64(h.Real(election.Instant(v.Election.ValidUntilBoottimeNS)))
			}
			e = v
		}
		l.seen.Apply(e)
	})
}

// change calls do, which changes what the lab knows. Then it wakes all callers that wait.
func (l *Lab) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *Lab) Look(f func(*observe.Elections)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.seen)
}

// Together returns for how long, until now, two agents have led the default election at once.
func (l *Lab) Together() (d time.Duration) {
	l.Look(func(e *observe.Elections) {
		d = observe.Together(e.Of(string(election.Default)).Overlaps(), boottime.Now())
	})
	return d
}

// Moved returns a channel that is closed when the lab next sees something new.
func (l *Lab) Moved() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.moved
}

// Exits returns the ends of the agents' processes, the newest last.
func (l *Lab) Exits() []Exit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.exits)
}

// Running returns the names of the hosts whose agents run and are not frozen.
func (l *Lab) Running() []string {
	var names []string
	for _, h := range l.Cluster.Hosts() {
		if h.Status() == hosts.Running {
			names = append(names, h.Name())
		}
	}
	return names
}

// Ask polls an agent now, to learn the agent's newest deadline.
func (l *Lab) Ask(h *hosts.Host) {
	if h.Status() != hosts.Running {
		return
	}
	l.mu.Lock()
	names := slices.Clip(l.followed)
	l.mu.Unlock()
	c := client.New(h.Config().Socket)
	defer c.Close()
	for _, name := range names {
		if p, err := observe.Ask(l.ctx, c, h.Name(), name); err == nil {
			l.Apply(p)
		}
	}
}

// asking is how long an agent may take to answer a request, on top of two leases.
const asking = 3 * time.Second

func Call(ctx context.Context, h *hosts.Host, do func(context.Context, *client.Client) error) error {
	c := client.New(h.Config().Socket)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, asking+2*h.Config().Lease)
	defer cancel()
	return do(ctx, c)
}

// ErrLate reports that the awaited event did not happen in time.
var ErrLate = errors.New("it took too long")

// lookEvery is how often Until checks its condition if nothing is reported.
const lookEvery = 5 * time.Millisecond

// Until waits until the condition holds. It returns ErrLate if the limit passes first.
func (l *Lab) Until(ctx context.Context, limit time.Duration, what string, condition func() bool) error {
	return l.Await(ctx, limit, lookEvery, what, condition)
}

// Await is Until with another time between two checks when nothing is reported.
func (l *Lab) Await(ctx context.Context, limit, every time.Duration, what string, condition func() bool) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		moved := l.Moved()
		if condition() {
			return nil
		}
		select {
		case <-moved:
		case <-tick.C:
		case <-late.C:
			return fmt.Errorf("wait for %s: %w: not within %s: %s", what, ErrLate, limit, l.Picture())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Agree waits until all running agents name the same leader of the default election.
func (l *Lab) Agree(ctx context.Context, limit time.Duration) (observe.Agreement, error) {
	var a observe.Agreement
	err := l.Until(ctx, limit, "agreement", func() (ok bool) {
		running := l.Running()
		l.Look(func(e *observe.Elections) { a, ok = e.Of(string(election.Default)).Agreement(running) })
		return ok && len(running) > 0
	})
	return a, err
}

func (l *Lab) Ended(ctx context.Context, limit time.Duration, all ...*hosts.Host) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	for _, h := range all {
		select {
		case <-h.Done():
		case <-late.C:
			return fmt.Errorf("%s has not ended: %w: not in %s", h.Name(), ErrLate, limit)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (l *Lab) Picture() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, name := range l.followed {
		of := name + ": "
		if len(l.followed) == 1 {
			of = ""
		}
		for _, h := range l.Cluster.Hosts() {
			s := l.seen.Of(name).View(h.Name())
			all = append(all, fmt.Sprintf("%s%s is %s, %s, names %q, term %d", of, h.Name(), h.Status(), s.State, s.Leader, s.Term))
		}
	}
	return strings.Join(all, "; ")
}
