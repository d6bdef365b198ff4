package bench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

const tellEvery = 5 * time.Second

// candidates are programs on several hosts that want to lead many elections.
type candidates struct {
	ctx     context.Context
	stop    context.CancelFunc
	clients []*client.Client // one for each host
	running sync.WaitGroup
	moved   chan struct{}

	mu      sync.Mutex
	won     []victory // by election: the newest victory
	holders []int     // by election: how many programs lead it; one agent allows at most one
	leading int       // how many elections some program leads
	lost    int       // how many leads have ended
}

// victory is where and when a program was elected.
type victory struct {
	host int
	at   election.Instant
}

// newCandidates prepares for n elections. No program is a candidate yet.
func newCandidates(ctx context.Context, all []*hosts.Host, n int) *candidates {
	c := &candidates{moved: make(chan struct{}, 1), won: make([]victory, n), holders: make([]int, n)}
	c.ctx, c.stop = context.WithCancel(ctx)
	for _, h := range all {
		c.clients = append(c.clients, client.New(h.Config().Socket))
	}
	return c
}

func (c *candidates) everywhere() {
	for host := range c.clients {
		for i := range c.won {
			c.start(i, host)
		}
	}
}

// start starts a candidate. After each lead that it loses it becomes a candidate again.
func (c *candidates) start(i, host int) {
	c.running.Go(func() {
		for c.ctx.Err() == nil {
			_ = c.clients[host].Run(c.ctx, fmt.Sprintf("bench-%04d", i), func(ctx context.Context, _ uint64) error {
				c.leads(i, host, 1)
				<-ctx.Done()
				c.leads(i, host, -1)
				return nil
			}) // the lead ended, or was refused: try again
		}
	})
}

func (c *candidates) leads(i, host, more int) {
	at := boottime.Now()
	c.mu.Lock()
	before := c.holders[i]
	c.holders[i] += more
	switch {
	case before == 0:
		c.leading++
	case c.holders[i] == 0:
		c.leading--
	}
	if more > 0 {
		c.won[i] = victory{host, at}
	} else {
		c.lost++
	}
	c.mu.Unlock()
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

func (c *candidates) state() (leading, lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leading, c.lost
}

func (c *candidates) victories() []victory {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]victory(nil), c.won...)
}

func (c *candidates) describe(what string) string {
	leading, lost := c.state()
	return strings.TrimPrefix(fmt.Sprintf("%s: %d of %d led, %d leads lost", what, leading, len(c.won), lost), ": ")
}

func (c *candidates) allLed() bool {
	leading, _ := c.state()
	return leading == len(c.won)
}

func (c *candidates) close() {
	c.stop()
	c.running.Wait()
	for _, x := range c.clients {
		x.Close()
	}
}

// await waits until done reports true, and returns how long that took.
func (b *bench) await(ctx context.Context, what string, c *candidates, within time.Duration, done func() bool) (time.Duration, error) {
	began := time.Now()
	limit, tell := time.NewTimer(within), time.NewTicker(tellEvery)
	defer limit.Stop()
	defer tell.Stop()
	for !done() {
		select {
		case <-c.moved:
		case <-tell.C:
			b.progress(c.describe(what), 0, 0)
		case <-limit.C:
			return time.Since(began), fmt.Errorf("wait for %s: %s after %s", what, c.describe(""), within)
		case <-ctx.Done():
			return time.Since(began), context.Cause(ctx)
		}
	}
	return time.Since(began), nil
}

// watchLeads waits for the given time, and returns how many leads were lost in it.
func (b *bench) watchLeads(ctx context.Context, what string, c *candidates, d time.Duration) (float64, error) {
	_, before := c.state()
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := observe.Sleep(ctx, min(tellEvery, time.Until(end))); err != nil {
			return 0, err
		}
		b.progress(c.describe(what), 0, 0)
	}
	_, after := c.state()
	return float64(after - before), nil
}
