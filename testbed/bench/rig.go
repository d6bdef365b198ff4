package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// rig is a cluster under observation. One goroutine uses it.
type rig struct {
	cluster *hosts.Cluster
	tracker *observe.Tracker
	events  <-chan observe.Event
	exits   chan hosts.Exit
	stop    context.CancelFunc
	lease   time.Duration
	rng     *rand.Rand
	first   election.Instant // just before the first agent's process was made
	started election.Instant // and the last one's
}

const (
	// patience is how long anything may take that should take a few leases.
	patience = 20 * time.Second
	// pollEvery is how often deadlines are asked for, of pollFew agents: of more
	// it is less often, so that asking stays cheap.
	pollEvery = 50 * time.Millisecond
	pollFew   = 8
)

func (b *bench) newRig(ctx context.Context, poll time.Duration) (*rig, error) {
	return newRig(ctx, b.config(), poll, b.rng)
}

func (b *bench) pollEvery() time.Duration {
	return pollEvery * time.Duration(max(1, b.on.Agents/pollFew))
}

// newRig starts agents. With a poll of 0 they are only watched.
func newRig(ctx context.Context, c hosts.Config, poll time.Duration, rng *rand.Rand) (*rig, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &rig{stop: stop, exits: make(chan hosts.Exit), rng: rng, lease: c.Lease()}
	c.OnExit = func(e hosts.Exit) {
		select {
		case r.exits <- e:
		case <-ctx.Done():
		}
	}
	var err error
	if r.cluster, err = hosts.New(c); err != nil {
		stop()
		return nil, err
	}
	lease := r.lease
	if !c.Quorum {
		lease = 0
	}
	r.tracker = observe.NewTracker(lease)
	var sources []observe.Source
	for _, h := range r.cluster.Hosts() {
		sources = append(sources, observe.Source{Agent: h.Name(), Socket: h.Config().Socket})
	}
	r.events = observe.Follow(ctx, observe.Options{Sources: sources, Poll: poll})
	for _, h := range r.cluster.Hosts() {
		if r.started, err = h.Start(); err != nil {
			return nil, errors.Join(err, r.close())
		}
		if r.first == 0 {
			r.first = r.started
		}
	}
	return r, nil
}

// unwatch ends the watching and leaves the agents alone.
func (r *rig) unwatch() {
	r.stop()
	for range r.events { // until nothing is followed
	}
}

// close kills the agents: nothing is measured any more.
func (r *rig) close() error {
	r.unwatch()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return r.cluster.Close(now)
}

// until records what happens until the condition holds.
func (r *rig) until(ctx context.Context, what string, condition func() bool) error {
	return r.untilWithin(ctx, patience, what, condition)
}

func (r *rig) untilWithin(ctx context.Context, patience time.Duration, what string, condition func() bool) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for !condition() {
		select {
		case e, open := <-r.events:
			if !open {
				return observe.ErrEnded
			}
			r.tracker.Apply(e)
		case e := <-r.exits:
			r.tracker.Exited(e.Host, e.At)
		case <-limit.C:
			return fmt.Errorf("wait for %s: not within %s: %s", what, patience, r.picture())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// picture describes the agents, for an error.
func (r *rig) picture() string {
	var said []string
	for _, h := range r.cluster.Hosts() {
		s := r.tracker.Standing(h.Name())
		said = append(said, fmt.Sprintf("%s is %s, %s, names %q, term %d", h.Name(), h.Status(), s.State, s.Leader, s.Term))
	}
	return strings.Join(said, "; ")
}

// agree waits until all agents that run name one leader.
func (r *rig) agree(ctx context.Context) (observe.Agreement, error) {
	return r.agreeWithin(ctx, patience)
}

func (r *rig) agreeWithin(ctx context.Context, patience time.Duration) (observe.Agreement, error) {
	var a observe.Agreement
	err := r.untilWithin(ctx, patience, "agreement", func() (ok bool) {
		var running []string
		for _, h := range r.cluster.Hosts() {
			if h.Status() == hosts.Running {
				running = append(running, h.Name())
			}
		}
		a, ok = r.tracker.Agreement(running)
		return ok && len(running) > 0
	})
	return a, err
}

func (r *rig) idle(ctx context.Context, d time.Duration) error {
	over := time.Now().Add(d)
	tick := time.NewTicker(max(time.Millisecond, min(d, 5*time.Millisecond)))
	defer tick.Stop()
	for time.Now().Before(over) {
		select {
		case e, open := <-r.events:
			if !open {
				return observe.ErrEnded
			}
			r.tracker.Apply(e)
		case e := <-r.exits:
			r.tracker.Exited(e.Host, e.At)
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// settle waits for an agreement, a time, and a random moment of some heartbeats
// more, so that a fault hits any of them. It returns the leader then.
func (r *rig) settle(ctx context.Context, d time.Duration) (*hosts.Host, error) {
	if _, err := r.agree(ctx); err != nil {
		return nil, err
	}
	if err := r.idle(ctx, d+time.Duration(r.rng.Int64N(int64(r.lease/4)))); err != nil {
		return nil, err
	}
	a, err := r.agree(ctx)
	if err != nil {
		return nil, err
	}
	h, ok := r.cluster.Host(a.Leader)
	if !ok {
		return nil, fmt.Errorf("find the leader: there is no agent %q", a.Leader)
	}
	return h, nil
}

// successor waits for the first leadership that begins after the instant.
func (r *rig) successor(ctx context.Context, after election.Instant) (observe.Claim, error) {
	var c observe.Claim
	err := r.until(ctx, "a new leader", func() (ok bool) {
		c, ok = r.tracker.LedAfter(after)
		return ok
	})
	return c, err
}

// ask polls an agent now, so that its newest deadline is known.
func (r *rig) ask(ctx context.Context, h *hosts.Host) {
	c := client.New(h.Config().Socket)
	defer c.Close()
	if p, err := observe.Ask(ctx, c, h.Name(), string(election.Default)); err == nil {
		r.tracker.Apply(p)
	}
}

// together is for how long two have led at once so far.
func (r *rig) together() time.Duration {
	return observe.Together(r.tracker.Overlaps(), boottime.Now())
}
