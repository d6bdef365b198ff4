package bench

import (
	"context"
	"errors"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// fault makes the leader stop leading.
type fault struct {
	// deal makes the fault happen, and returns the instant just before it.
	deal   func(*rig, context.Context, *hosts.Host) (election.Instant, error)
	undo   func(*rig, context.Context, *hosts.Host) error // nil: nothing to undo
	ends   bool                                           // it ends the leader's process
	unsure bool                                           // another leader may or may not follow
}

func faults() map[string]fault {
	return map[string]fault{
		"kill":     {deal: begin(hosts.Crash()), undo: (*rig).startAgain, ends: true},
		"sigterm":  {deal: begin(hosts.Terminate()), undo: (*rig).startAgain, ends: true},
		"resign":   {deal: (*rig).resign},
		"transfer": {deal: (*rig).transfer},
		"cut":      {deal: begin(silentCut()), undo: (*rig).heal},
		"freeze":   {deal: begin(hosts.Freeze()), undo: (*rig).thaw},
		// It is chance whether another agent leads when the former leader is thawed. The two
		// come closest to an overlap here.
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

// handOver is like lab.HandOver, for a leader that may have lost its lead before.
func handOver(ctx context.Context, from *hosts.Host, name, to string) (election.Instant, error) {
	at, err := lab.HandOver(ctx, from, name, to)
	if missesTheLeader(err) {
		return at, errMoved
	}
	return at, err
}

// errMoved is no failure: on a busy machine agents lose leads without a fault.
const errMoved = errAgain("the leader was another one when the fault came")

// missesTheLeader reports whether the agent had lost its lead before the request.
func missesTheLeader(err error) bool {
	refused, ok := errors.AsType[*client.APIError](err)
	return ok && (refused.Code == api.CodeNotLeader || refused.Code == api.CodeBusy)
}

func (r *rig) deal(ctx context.Context, settle time.Duration, f fault) (leader *hosts.Host, at election.Instant, err error) {
	if leader, err = r.settle(ctx, settle); err != nil {
		return nil, 0, err
	}
	at, err = f.deal(r, ctx, leader)
	return leader, at, err
}
