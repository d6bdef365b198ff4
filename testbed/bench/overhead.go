package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// overhead measures what measuring adds to what is measured. Two things can: the
// time from the stamp before a fault to the fault itself, and the load of
// watching. The end of a takeover is stamped by the new leader itself.
func (b *bench) overhead(ctx context.Context) error {
	stamps, err := b.stampCost(ctx)
	if err != nil {
		return err
	}
	b.add("overhead_stamp", "measuring: stamp before a signal → the signal was sent", "ms", &Target{ofP99, 1}, stamps)
	rounds := max(fewestRounds, b.o.Rounds*3/10)
	watched, unwatched, err := b.watchCost(ctx, rounds)
	if err != nil {
		return err
	}
	b.add("overhead_watched", "transfer → new leader, watched as in every measurement", "ms", nil, watched)
	b.add("overhead_unwatched", "transfer → new leader, nobody watching, read afterwards", "ms", nil, unwatched)
	added := math.Max(0, Summarise(watched).Median-Summarise(unwatched).Median)
	b.add("overhead", "measuring: what watching adds to a takeover, difference of the medians", "ms", &Target{ofMedian, 1}, []float64{added})
	return nil
}

// stampCost returns how long after the stamp a signal has been sent, in
// milliseconds. The signal is one that changes nothing: SIGCONT.
func (b *bench) stampCost(ctx context.Context) (took []float64, err error) {
	const signals = 200
	r, err := b.newRig(ctx, b.o.Profile, b.pollEvery())
	if err != nil {
		return nil, err
	}
	defer b.finish(r, &err)
	leader, err := r.settle(ctx, 0)
	if err != nil {
		return nil, err
	}
	for range signals {
		at, err := leader.Thaw()
		if err != nil {
			return nil, err
		}
		took = append(took, millis(boottime.Now().Sub(at)))
	}
	return took, nil
}

// watchCost makes transfers, in turn watched as always and with nobody watching,
// and returns how long they took, in milliseconds.
func (b *bench) watchCost(ctx context.Context, rounds int) (watched, unwatched []float64, err error) {
	const what = "what watching adds"
	for range 2 { // a watched and an unwatched cluster, twice, so that a drift of the machine hits both
		half, err := b.takeovers(ctx, b.o.Profile, what+", watched", (rounds+1)/2, transferred())
		if err != nil {
			return nil, nil, err
		}
		watched = append(watched, half...)
		if half, err = b.unwatchedTransfers(ctx, what+", unwatched", (rounds+1)/2); err != nil {
			return nil, nil, err
		}
		unwatched = append(unwatched, half...)
	}
	return watched, unwatched, nil
}

// unwatchedTransfers makes transfers that nobody watches. When a leader began is
// read from its watch a while after.
func (b *bench) unwatchedTransfers(ctx context.Context, what string, rounds int) (took []float64, err error) {
	r, err := b.newRig(ctx, b.o.Profile, 0)
	if err != nil {
		return nil, err
	}
	defer b.finish(r, &err)
	a, err := r.agree(ctx)
	if err != nil {
		return nil, err
	}
	r.unwatch()
	all := r.cluster.Hosts()
	for round := range rounds {
		if err := sleep(ctx, r.lease*21/20+time.Duration(b.rng.Int64N(int64(r.lease/4)))); err != nil {
			return nil, err
		}
		leader, _ := r.cluster.Host(a.Leader)
		to := leader
		for to == leader {
			to = all[b.rng.IntN(len(all))]
		}
		began, at, err := unwatchedTransfer(ctx, leader, to)
		if err != nil {
			return nil, fmt.Errorf("%s, round %d: %w", what, round+1, err)
		}
		took = append(took, millis(began.Sub(at)))
		a.Leader = to.Name()
		b.progress(what, round+1, rounds)
	}
	return took, nil
}

// unwatchedTransfer hands over and returns when the successor began to lead, and
// the instant just before the request.
func unwatchedTransfer(ctx context.Context, from, to *hosts.Host) (began, at election.Instant, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	successor := client.New(to.Config().Socket)
	defer successor.Close()
	before, err := successor.Election(ctx, string(election.Default), client.ElectionOptions{})
	if err != nil {
		return 0, 0, err
	}
	asked := client.New(from.Config().Socket)
	defer asked.Close()
	at = boottime.Now()
	if _, err := asked.Transfer(ctx, string(election.Default), to.Name()); err != nil {
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
