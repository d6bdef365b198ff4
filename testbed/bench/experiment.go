package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

type experiment struct {
	name    string   // name of the benchmark
	profile string   // of the hosts; "": the cluster's own
	faults  []string // measured one after another
	tenths  int      // its number of rounds, in tenths of the number of kills that was asked for
	hasty   bool     // a round begins before the last one's effects have ended, and measures overlaps only
	again   bool     // less than a lease before the fault, another agent was killed and started again
	count   bool     // a round counts the messages of the election, and measures nothing else
}

const (
	// afterAgreement is how long it may take until the counters show all messages of an election.
	afterAgreement = 1200 * time.Millisecond
	asksAfterThaw  = 5
)

// rounds turns the experiment into a part of the bench.
func rounds(e experiment) func(*bench, context.Context) error {
	return func(b *bench, ctx context.Context) error {
		if e.profile != "" {
			defer func(was Point) { b.on = was }(b.on)
			b.on.Profile = e.profile
		}
		for _, name := range e.faults {
			if err := b.experiment(ctx, e, name); err != nil {
				return err
			}
		}
		return nil
	}
}

// experiment makes all rounds of one fault.
func (b *bench) experiment(ctx context.Context, e experiment, name string) (err error) {
	f, ok := faults()[name]
	if !ok {
		return fmt.Errorf("find the fault %s: there is none", name)
	}
	r, err := b.newRig(ctx, b.config(), b.pollEvery())
	if err != nil {
		return err
	}
	defer b.finish(r, &err)
	what := e.name + "/fault=" + name
	if e.again {
		what += "/again"
	}
	return b.repeat(what, b.rounds(e.tenths), func() error {
		found, err := r.round(ctx, e, f)
		if err != nil {
			return err
		}
		switch {
		case e.count:
			b.add(what, value{Value: found.sent, Unit: perElection})
		case e.hasty:
			b.add(what, took(found.together, overlapped))
		default:
			b.add(what, took(found.took, perTakeover), took(found.together, overlapped))
		}
		return nil
	})
}

// found is what a round measured.
type found struct {
	took     time.Duration // from the fault to the next leadership
	together time.Duration // for how long two agents led at once
	sent     float64       // messages of the election
}

// round makes one round; at its end all agents run again. The fault comes a lease after the last
// round: then a restarted voter is free to vote, and an agent that gave up its leadership is free
// to lead. So a round measures one fault that hits healthy agents, unless the experiment demands
// otherwise.
func (r *rig) round(ctx context.Context, e experiment, f fault) (found, error) {
	settle := r.lease * 21 / 20
	switch {
	case e.hasty:
		settle = r.lease / 4
	case e.count:
		settle += afterAgreement // before the fault, all messages of the start have been sent and counted
	case e.again:
		if _, err := r.round(ctx, experiment{}, faults()["kill"]); err != nil {
			return found{}, err
		}
		settle = time.Duration(r.rng.Int64N(int64(r.lease))) // the killed agent's voter may hold promises (V5)
	}
	before := r.Together()
	var counter counter
	if e.count {
		f = counter.around(f)
	}
	leader, at, err := r.deal(ctx, settle, f)
	if err != nil {
		return found{}, err
	}
	var next observe.Claim
	if !f.unsure {
		if next, err = r.successor(ctx, at); err != nil {
			return found{}, err
		}
	}
	x := found{took: next.Start.Sub(at)}
	if e.count {
		if x.sent, err = counter.read(ctx, r); err != nil {
			return x, err
		}
	}
	if f.undo != nil {
		if err := f.undo(r, ctx, leader); err != nil {
			return x, err
		}
	}
	if _, err := r.agree(ctx); err != nil {
		return x, err
	}
	if next.Agent == leader.Name() {
		return x, errAgain("the same agent led again, nobody took over")
	}
	x.together = r.Together() - before
	return x, nil
}

// cold measures how soon agents that are started one after another agree.
func (b *bench) cold(ctx context.Context) error {
	return b.repeat("ColdStart", b.rounds(2), func() (err error) {
		r, err := b.newRig(ctx, b.config(), 0)
		if err != nil {
			return err
		}
		defer b.finish(r, &err)
		a, err := r.agree(ctx)
		if err != nil {
			return err
		}
		b.add("ColdStart", took(a.At.Sub(r.started), "ms/start"), took(a.At.Sub(r.first), "ms-all/start"))
		return nil
	})
}

// fault makes the leader stop leading.
type fault struct {
	// deal makes the fault happen, and returns the instant just before it.
	deal   func(*rig, context.Context, *hosts.Host) (election.Instant, error)
	undo   func(*rig, context.Context, *hosts.Host) error // nil: nothing to undo
	ends   bool                                           // deal ends the leader's process
	unsure bool                                           // the former leader may go on leading, so a round waits for no other leader
}

func faults() map[string]fault {
	return map[string]fault{
		"kill":     {deal: begin(hosts.Crash()), undo: (*rig).startAgain, ends: true},
		"sigterm":  {deal: begin(hosts.Terminate()), undo: (*rig).startAgain, ends: true},
		"resign":   {deal: (*rig).resign},
		"transfer": {deal: (*rig).transfer},
		"cut":      {deal: begin(silentCut()), undo: (*rig).heal},
		"freeze":   {deal: begin(hosts.Freeze()), undo: (*rig).thaw},
		// Another agent may or may not lead when the former leader is thawed. With this fault two
		// leaderships come closest to an overlap.
		"freeze-for-a-lease": {deal: (*rig).freezeForALease, undo: (*rig).thaw, unsure: true},
	}
}

func begin(f hosts.Fault) func(*rig, context.Context, *hosts.Host) (election.Instant, error) {
	return func(r *rig, _ context.Context, leader *hosts.Host) (election.Instant, error) {
		return r.Begin(f, leader)
	}
}

// silentCut loses the leader's packets in both directions. Its links stay up, and no agent is
// notified.
func silentCut() hosts.Fault { return hosts.Cut(nil, hosts.BothWays) }

func (r *rig) heal(_ context.Context, h *hosts.Host) error {
	_, err := r.End(silentCut(), h)
	return err
}

// startAgain starts an agent again once its process has ended.
func (r *rig) startAgain(ctx context.Context, h *hosts.Host) error {
	if err := r.Ended(ctx, patience, h); err != nil {
		return err
	}
	_, err := r.Start(h)
	return err
}

func (r *rig) freezeForALease(ctx context.Context, leader *hosts.Host) (election.Instant, error) {
	at, err := r.Begin(hosts.Freeze(), leader)
	if err != nil {
		return 0, err
	}
	return at, observe.Sleep(ctx, r.lease*3/4+time.Duration(r.rng.Int64N(int64(r.lease*2/5))))
}

// thaw lets a frozen leader go on, and asks it at once whether it still claims to lead.
func (r *rig) thaw(ctx context.Context, leader *hosts.Host) error {
	if _, err := r.End(hosts.Freeze(), leader); err != nil {
		return err
	}
	for range asksAfterThaw {
		r.Ask(leader)
	}
	return observe.Sleep(ctx, r.lease/10)
}

func (r *rig) resign(ctx context.Context, leader *hosts.Host) (election.Instant, error) {
	return handOver(ctx, leader, string(election.Default), "")
}

func (r *rig) transfer(ctx context.Context, leader *hosts.Host) (election.Instant, error) {
	return handOver(ctx, leader, string(election.Default), r.other(leader).Name())
}

func (r *rig) other(than *hosts.Host) *hosts.Host {
	all := r.Cluster.Hosts()
	for {
		if h := all[r.rng.IntN(len(all))]; h != than {
			return h
		}
	}
}

// handOver calls lab.HandOver. If the agent has lost its lead before, the error leads to a repeated round.
func handOver(ctx context.Context, from *hosts.Host, name, to string) (election.Instant, error) {
	at, err := lab.HandOver(ctx, from, name, to)
	refused, ok := errors.AsType[*client.APIError](err)
	if ok && (refused.Code == api.CodeNotLeader || refused.Code == api.CodeBusy) {
		return at, errMoved
	}
	return at, err
}

// errMoved leads to a repeated round: on a busy machine, agents lose leads without a fault.
const errMoved = errAgain("the leader was another one when the fault came")

func (r *rig) deal(ctx context.Context, settle time.Duration, f fault) (leader *hosts.Host, at election.Instant, err error) {
	if leader, err = r.settle(ctx, settle); err != nil {
		return nil, 0, err
	}
	at, err = f.deal(r, ctx, leader)
	return leader, at, err
}

type counter struct {
	counting []*hosts.Host // all agents except one that the fault kills: its count is lost
	before   float64
}

// around returns a fault that first reads the counters, and then does what f does.
func (c *counter) around(f fault) fault {
	deal := f.deal
	f.deal = func(r *rig, ctx context.Context, leader *hosts.Host) (at election.Instant, err error) {
		c.counting = slices.DeleteFunc(slices.Clone(r.Cluster.Hosts()), func(h *hosts.Host) bool { return f.ends && h == leader })
		if c.before, err = sentMessages(ctx, c.counting); err != nil {
			return 0, err
		}
		return deal(r, ctx, leader)
	}
	return f
}

// read waits until all agents agree, and returns how many messages were sent since the fault.
func (c *counter) read(ctx context.Context, r *rig) (float64, error) {
	if _, err := r.agree(ctx); err != nil {
		return 0, err
	}
	if err := observe.Sleep(ctx, afterAgreement); err != nil {
		return 0, err
	}
	after, err := sentMessages(ctx, c.counting)
	return after - c.before, err
}

// sentMessages does not count heartbeats and their answers, which are sent all the time.
func sentMessages(ctx context.Context, all []*hosts.Host) (sum float64, err error) {
	for _, h := range all {
		m, err := lab.ReadMetrics(ctx, h)
		if err != nil {
			return 0, err
		}
		for kind, n := range m.By("doyen_messages_total", "kind", "direction=sent") {
			if !strings.HasPrefix(kind, "Heartbeat") {
				sum += n
			}
		}
	}
	return sum, nil
}
