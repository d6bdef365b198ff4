package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
)

const (
	manyHolders   = 5    // agents
	manyElections = 1000 // a fifth of them led by each
	// manySlack is what it may take beyond the lease until all elections of an
	// agent that died are led again, in milliseconds.
	manySlack = 200
	// standing is how many candidacies are begun at once.
	standing = 32
)

// manyElections measures what a thousand elections cost five agents, and how soon
// all that one of them led are led again when it dies.
func (b *bench) manyElections(ctx context.Context) error {
	if !canMeasureIdle() {
		b.note("many elections: their cost is measured on Linux only")
		return nil
	}
	o := b.o
	b.o.Agents = manyHolders
	defer func() { b.o = o }()
	costs, took, err := b.many(ctx, manyElections)
	var cpu, rss []float64
	for _, c := range costs {
		cpu, rss = append(cpu, c.cpuPercent), append(rss, c.rssMiB)
	}
	of := fmt.Sprintf("%d elections held by %d agents, an agent: ", manyElections, manyHolders)
	b.add("many_cpu", of+"CPU of a core", "%", &Target{ofMax, 3}, cpu)
	b.add("many_rss", of+"RSS", "MiB", &Target{ofMax, 60}, rss)
	what := fmt.Sprintf("kill -9 of an agent that leads %d elections → each led again", manyElections/manyHolders)
	b.add("many_kill", what, "ms", &Target{ofMax, millis(b.config(b.o.Profile).Lease()) + manySlack}, took)
	return err
}

// ballots are many elections, with two candidates each, on two hosts.
type ballots struct {
	ctx     context.Context
	clients []*client.Client // one for each host
	mu      sync.Mutex
	won     []victory // the newest of each election
	moved   chan struct{}
	held    []*client.Candidacy
	running sync.WaitGroup
}

// victory is a candidate's word that it was elected.
type victory struct {
	host int
	at   election.Instant // when the word was read
}

func (b *bench) many(ctx context.Context, n int) (costs []cost, took []float64, err error) {
	r, err := b.newRig(ctx, b.o.Profile, 0)
	if err != nil {
		return nil, nil, err
	}
	defer b.finish(r, &err)
	if _, err := r.agree(ctx); err != nil {
		return nil, nil, err
	}
	r.unwatch()
	all := r.cluster.Hosts()
	votes := newBallots(ctx, all, n)
	defer votes.close()
	for _, second := range []bool{false, true} { // the first candidates lead before the second ones stand
		if err := votes.stand(second); err != nil {
			return nil, nil, err
		}
		if err := votes.await("every election is led", func(i int, v victory) bool { return v.at > 0 }); err != nil {
			return nil, nil, err
		}
	}
	if costs, err = b.costsOf(ctx, all, "many elections"); err != nil {
		return nil, nil, err
	}
	b.progress("the death of an agent that leads many", 0, 0)
	victim := b.rng.IntN(len(all))
	led := votes.ledBy(victim)
	at, err := all[victim].Kill()
	if err != nil {
		return costs, nil, err
	}
	err = votes.await("each election is led again", func(i int, v victory) bool { return !led[i] || v.at > at && v.host != victim })
	return costs, votes.tookSince(at, led), err
}

// tookSince returns how long after the instant each of these elections was won,
// in milliseconds.
func (v *ballots) tookSince(at election.Instant, of []bool) (took []float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, won := range v.won {
		if of[i] && won.at > at {
			took = append(took, millis(won.at.Sub(at)))
		}
	}
	return took
}

func newBallots(ctx context.Context, all []*hosts.Host, n int) *ballots {
	v := &ballots{ctx: ctx, won: make([]victory, n), moved: make(chan struct{}, 1)}
	for _, h := range all {
		v.clients = append(v.clients, client.New(h.Config().Socket))
	}
	return v
}

// host of an election's first or second candidate: the second ones of a host's
// elections are spread over all others.
func (v *ballots) host(i int, second bool) int {
	n := len(v.clients)
	if !second {
		return i % n
	}
	return (i + 1 + i/n%(n-1)) % n
}

// stand begins one candidacy in every election.
func (v *ballots) stand(second bool) error {
	next, errs := make(chan int), make([]error, standing)
	var starting sync.WaitGroup
	for w := range standing {
		starting.Go(func() {
			for i := range next {
				errs[w] = errors.Join(errs[w], v.standIn(i, v.host(i, second)))
			}
		})
	}
	for i := range v.won {
		next <- i
	}
	close(next)
	starting.Wait()
	return errors.Join(errs...)
}

func (v *ballots) standIn(i, host int) error {
	s, err := v.clients[host].Stand(v.ctx, fmt.Sprintf("bench-%04d", i), api.CampaignRequest{})
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.held = append(v.held, s)
	v.mu.Unlock()
	v.running.Go(func() {
		for {
			event, err := s.Next(v.ctx)
			if err != nil {
				return // its agent is gone, or all is over
			}
			if event.Type == api.CampaignElected {
				v.elected(i, victory{host, boottime.Now()})
			}
		}
	})
	return nil
}

func (v *ballots) elected(i int, won victory) {
	v.mu.Lock()
	v.won[i] = won
	v.mu.Unlock()
	select {
	case v.moved <- struct{}{}:
	default:
	}
}

// await waits until the newest victory of each election fits.
func (v *ballots) await(what string, fits func(i int, v victory) bool) error {
	limit := time.NewTimer(2 * patience)
	defer limit.Stop()
	for {
		missing := 0
		v.mu.Lock()
		for i, won := range v.won {
			if !fits(i, won) {
				missing++
			}
		}
		v.mu.Unlock()
		if missing == 0 {
			return nil
		}
		select {
		case <-v.moved:
		case <-limit.C:
			return fmt.Errorf("wait until %s: %d of %d are not, after %s", what, missing, len(v.won), 2*patience)
		case <-v.ctx.Done():
			return context.Cause(v.ctx)
		}
	}
}

// ledBy tells of each election whether that host's candidate leads it.
func (v *ballots) ledBy(host int) []bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	led := make([]bool, len(v.won))
	for i, won := range v.won {
		led[i] = won.host == host
	}
	return led
}

func (v *ballots) close() {
	for _, s := range v.held {
		_ = s.Close() // its agent may be gone
	}
	v.running.Wait()
	for _, c := range v.clients {
		c.Close()
	}
}
