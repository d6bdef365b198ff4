package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/doyen-election/doyen/testbed/observe"
)

type experiment struct {
	name    string   // name of the benchmark
	profile string   // of the hosts; "": that of the cluster
	faults  []string // measured one after another
	tenths  int      // how many tenths of the kills asked for are its rounds
	hasty   bool     // a round begins before the last one's effects have ended, and measures overlaps only
	again   bool     // less than a lease earlier, another agent was killed and started again
	count   bool     // a round counts the messages of the election, and measures nothing else
}

const (
	// afterAgreement is how long the counters may take to show all messages of an election.
	afterAgreement = 1200 * time.Millisecond
	asksAfterThaw  = 5
)

// rounds turns the experiment into a part of the bench (parts.go).
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
	r, err := b.newRig(ctx, b.pollEvery())
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

// round makes one round; at its end all agents run again. It begins a lease after the last one,
// when a restarted voter is free to vote, and an agent that gave up its leadership is free to
// lead. So it measures one fault that hits healthy agents, unless the experiment demands
// otherwise.
func (r *rig) round(ctx context.Context, e experiment, f fault) (found, error) {
	settle := r.lease * 21 / 20
	switch {
	case e.hasty:
		settle = r.lease / 4
	case e.count:
		settle += afterAgreement // the start's messages have been sent by then
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
		r, err := b.newRig(ctx, 0)
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
