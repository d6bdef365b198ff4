package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/doyen-election/doyen/testbed/hosts"
)

const (
	manyHolders   = 5    // how many agents hold the many elections
	manyElections = 1000 // each agent leads a fifth of them
	// loadElections is how many elections have a candidate on each host.
	loadElections = 1000
	// loadBusy is the longest time allowed from a cold start until all of them are led, beside
	// busy loops.
	loadBusy = 30 * time.Second
	// loadWatch is how long no program may lose a lead that it won.
	loadWatch = time.Minute
	// DefaultBusy is how many busy loops run beside the agents.
	DefaultBusy = 4
)

// manyElections measures what a thousand elections cost five agents. Then it kills one agent,
// and measures how soon all elections that the agent led are led again.
func (b *bench) manyElections(ctx context.Context) error {
	defer func(was Point) { b.on = was }(b.on)
	b.on.Agents = manyHolders
	return b.many(ctx, manyElections)
}

func (b *bench) many(ctx context.Context, n int) (err error) {
	return b.quiet(ctx, func(r *rig, _ *hosts.Host) error {
		all := r.Cluster.Hosts()
		c := newCandidates(ctx, all, n)
		defer c.close()
		for _, second := range []bool{false, true} { // all first candidates lead before the second ones start
			for i := range n {
				c.start(i, hostOf(i, len(all), second))
			}
			if _, err := b.await(ctx, "every election to be led", c, 2*patience, c.allLed); err != nil {
				return err
			}
		}
		costs, err := b.costsOf(ctx, all, "many elections", busySettle, b.window())
		if err != nil {
			return err
		}
		for _, x := range costs {
			b.add("ManyElections", value{Value: x.rssMiB, Unit: rss}, value{Value: x.cpuPercent, Unit: cpu})
		}
		b.progress("the death of an agent that leads many", 0, 0)
		victim, before := b.rng.IntN(len(all)), c.victories()
		at, err := all[victim].Kill()
		if err != nil {
			return err
		}
		_, err = b.await(ctx, "each election to be led again", c, 2*patience, func() bool {
			for i, v := range c.victories() {
				if before[i].host == victim && (v.at <= at || v.host == victim) {
					return false
				}
			}
			return true
		})
		for i, v := range c.victories() {
			if before[i].host == victim && v.at > at {
				b.add("ManyElections", took(v.at.Sub(at), perTakeover))
			}
		}
		return err
	})
}

// hostOf returns the host of an election's first or second candidate. The elections that one
// host leads have their second candidates spread over all other hosts.
func hostOf(i, hosts int, second bool) int {
	if !second {
		return i % hosts
	}
	return (i + 1 + i/hosts%(hosts-1)) % hosts
}

// load measures how soon all of a thousand elections, with a candidate on every host, are led:
// on a quiet machine, and beside programs that use its processors.
func (b *bench) load(ctx context.Context) error {
	err := b.underLoad(ctx, loadElections, 0, loadWatch)
	if err != nil || b.o.Busy == 0 {
		return err
	}
	return b.underLoad(ctx, loadElections, b.o.Busy, loadBusy)
}

// underLoad starts agents, busy loops, and on each host programs that want to lead n elections.
// When all are led, it watches them for a while.
func (b *bench) underLoad(ctx context.Context, n, busy int, watch time.Duration) (err error) {
	return b.quiet(ctx, func(r *rig, _ *hosts.Host) error {
		loops, err := newLoops(busy)
		defer loops.end()
		if err != nil {
			return err
		}
		c := newCandidates(ctx, r.Cluster.Hosts(), n)
		defer c.close()
		what, name := fmt.Sprintf("%d elections beside %d busy loops", n, busy), "Load/loops=0"
		if busy > 0 {
			name = "Load/loops=some"
		}
		// phase measures how long it takes until all are led, and then watches for a while.
		phase := func(what, name string, within, watch time.Duration) error {
			settled, err := b.await(ctx, what, c, within, c.allLed)
			b.add(name, took(settled, perSettling))
			if err != nil && name != "Load/loops=some" { // beside busy loops it goes on to their end
				return err
			}
			lost, err := b.watchLeads(ctx, what+", watching", c, watch)
			if err == nil {
				b.add(name, value{Value: lost, Unit: leadsLost})
			}
			return err
		}
		c.everywhere()
		if err := phase(what, name, patience+loadBusy, watch); err != nil {
			return err
		}
		if busy > 0 {
			loops.end()
			if err := phase(what+", loops ended", "Load/loops=ended", 3*patience, min(watch, 2*tellEvery)); err != nil {
				return err
			}
		}
		return nil
	})
}

type loops struct{ running []*exec.Cmd }

func newLoops(n int) (*loops, error) {
	l := &loops{}
	for range n {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			return l, errors.Join(fmt.Errorf("start a busy loop: %w", err))
		}
		l.running = append(l.running, cmd)
	}
	return l, nil
}

func (l *loops) end() {
	for _, cmd := range l.running {
		_ = cmd.Process.Kill() // an error would mean that it had ended before
		_ = cmd.Wait()         // its error is that it was killed
	}
	l.running = nil
}
