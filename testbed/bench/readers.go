package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	// readerCount readers send quorum reads, one after another, for readersFor.
	readerCount = 60
	readersFor  = 10 * time.Second
)

// readers measures whether leads are lost while many readers send quorum reads.
func (b *bench) readers(ctx context.Context) error {
	return b.askMajority(ctx, loadElections, readerCount, readersFor)
}

// reads is how long reads took, in milliseconds.
type reads struct{ answered, refused []float64 }

func (b *bench) askMajority(ctx context.Context, elections, count int, d time.Duration) (err error) {
	return b.quiet(ctx, func(r *rig, _ *hosts.Host) error {
		c := newCandidates(ctx, r.Cluster.Hosts(), elections)
		defer c.close()
		c.everywhere()
		if _, err := b.await(ctx, fmt.Sprintf("%d elections before %d readers", elections, count), c, 2*patience, c.allLed); err != nil {
			return err
		}
		if err := observe.Sleep(ctx, d/5); err != nil { // the costs of the start have ended by then
			return err
		}
		_, before := c.state()
		answers := 0
		for _, h := range r.Cluster.Hosts() {
			b.progress(fmt.Sprintf("%d readers of %s", count, h.Name()), 0, 0)
			each, err := readQuorum(ctx, h, elections, count, d/time.Duration(b.on.Agents))
			if err != nil {
				return err
			}
			answers += len(each.answered)
			b.addAll("Readers", perRead, thin(each.answered))
			b.addAll("Readers", perRefusal, thin(each.refused))
		}
		_, after := c.state()
		b.add("Readers", value{Value: float64(after - before), Unit: leadsLost}, value{Value: float64(answers) / d.Seconds(), Unit: answersPerSecond})
		return nil
	})
}

// readQuorum lets many callers send quorum reads to an agent for a while.
func readQuorum(ctx context.Context, h *hosts.Host, elections, count int, d time.Duration) (all reads, err error) {
	var running sync.WaitGroup
	each, errs := make([]reads, count), make([]error, count)
	end := time.Now().Add(d)
	for i := range count {
		running.Go(func() {
			a, err := newAsking(h)
			if err != nil {
				errs[i] = err
				return
			}
			defer a.conn.Close()
			for n := i; time.Now().Before(end) && ctx.Err() == nil && errs[i] == nil; n += count {
				errs[i] = each[i].read(a, n%elections)
			}
		})
	}
	running.Wait()
	for _, e := range each {
		all.answered, all.refused = append(all.answered, e.answered...), append(all.refused, e.refused...)
	}
	return all, errors.Join(errs...)
}

func (r *reads) read(a *asking, of int) error {
	began := time.Now()
	status, err := a.ask(fmt.Sprintf("/v1/elections/bench-%04d?consistency=quorum", of))
	if err != nil {
		return err
	}
	switch took := millis(time.Since(began)); status {
	case http.StatusOK:
		r.answered = append(r.answered, took)
	case http.StatusServiceUnavailable:
		r.refused = append(r.refused, took)
	default:
		return fmt.Errorf("ask the agent: %d %s", status, http.StatusText(status))
	}
	return nil
}
