package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// overhead measures what the measuring adds to the figures. There are two such costs: the time
// from the stamp before a fault to the fault itself, and the load of watching. The end of a
// takeover costs nothing, since the new leader stamps it.
func (b *bench) overhead(ctx context.Context) error {
	if err := b.stampCost(ctx); err != nil {
		return err
	}
	const name = "Measuring/of=watching"
	var watched, unwatched []float64
	half := (b.rounds(3) + 1) / 2
	for range 2 { // watched and unwatched, twice, so that a drift of the machine hits both
		more, err := b.watchedTransfers(ctx, half)
		if err != nil {
			return err
		}
		watched = append(watched, more...)
		if more, err = b.unwatchedTransfers(ctx, half); err != nil {
			return err
		}
		unwatched = append(unwatched, more...)
	}
	for i := range watched {
		b.add(name, value{Value: watched[i], Unit: "ms-watched/takeover"}, value{Value: unwatched[i], Unit: "ms-unwatched/takeover"})
	}
	added := median(watched) - median(unwatched)
	b.add(name, value{Value: max(0, added), Unit: "ms-added/takeover"})
	return nil
}

// stampCost measures the time from a stamp to its signal, with one that changes nothing.
func (b *bench) stampCost(ctx context.Context) (err error) {
	const signals = 200
	r, err := b.newRig(ctx, b.pollEvery())
	if err != nil {
		return err
	}
	defer b.finish(r, &err)
	leader, err := r.settle(ctx, 0)
	if err != nil {
		return err
	}
	return b.repeat("stamps before signals", signals, func() error {
		at, err := leader.Thaw()
		if err == nil {
			b.add("Measuring/of=signal", took(boottime.Now().Sub(at), "ms/signal"))
		}
		return err
	})
}

// watchedTransfers returns how long transfers took that were watched, in milliseconds.
func (b *bench) watchedTransfers(ctx context.Context, rounds int) (all []float64, err error) {
	r, err := b.newRig(ctx, b.pollEvery())
	if err != nil {
		return nil, err
	}
	defer b.finish(r, &err)
	err = b.repeat("what watching adds, watched", rounds, func() error {
		found, err := r.round(ctx, experiment{}, faults()["transfer"])
		if err == nil {
			all = append(all, millis(found.took))
		}
		return err
	})
	return all, err
}

// unwatchedTransfers makes transfers that nothing watches. The successor's history shows
// afterwards when it began to lead.
func (b *bench) unwatchedTransfers(ctx context.Context, rounds int) (all []float64, err error) {
	err = b.quiet(ctx, func(r *rig, leader *hosts.Host) error {
		return b.repeat("what watching adds, unwatched", rounds, func() error {
			if err := observe.Sleep(ctx, r.lease*21/20+time.Duration(b.rng.Int64N(int64(r.lease/4)))); err != nil {
				return err
			}
			to := r.other(leader)
			began, at, err := unwatchedTransfer(ctx, leader, to)
			if err == nil {
				all, leader = append(all, millis(began.Sub(at))), to
			}
			return err
		})
	})
	return all, err
}

// unwatchedTransfer returns when the successor began to lead, and the instant just before the
// request.
func unwatchedTransfer(ctx context.Context, from, to *hosts.Host) (began, at election.Instant, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	successor := client.New(to.Config().Socket)
	defer successor.Close()
	before, err := successor.Election(ctx, string(election.Default), client.ElectionOptions{})
	if err != nil {
		return 0, 0, err
	}
	if at, err = handOver(ctx, from, string(election.Default), to.Name()); err != nil {
		return 0, 0, err
	}
	for change, err := range successor.Watch(ctx, string(election.Default), before.Index) {
		if err != nil {
			return 0, 0, err
		}
		if change.IsLeader && change.Type != api.ChangeSnapshot {
			return election.Instant(change.BoottimeNS), at, nil
		}
	}
	return 0, 0, fmt.Errorf("%s never led", to.Name())
}
