package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/testbed/hosts"
)

const (
	// loadElections have a candidate on each host.
	loadElections = 1000
	// loadStart is the longest that the cold start of all of them may take in
	// milliseconds, loadBusy the longest beside busy loops, loadAfter the longest
	// once those have ended.
	loadStart, loadBusy, loadAfter = 8000, 30_000, 5000
	// loadWatch is for how long nobody may lose a lead that was won.
	loadWatch = time.Minute
	// DefaultBusy is how many busy loops run beside the agents.
	DefaultBusy = 4
	// tellEvery is how often the progress is told.
	tellEvery = 5 * time.Second
)

// load measures how soon a thousand elections with a candidate on every host are
// all led: on a quiet machine, and beside programs that take its processors.
func (b *bench) load(ctx context.Context) error {
	all := fmt.Sprintf("%d elections × %d candidates from a cold start", loadElections, b.o.Agents)
	quiet, err := b.underLoad(ctx, loadElections, 0, loadWatch)
	b.add("load_start", all+" → all led", "ms", &Target{ofMax, loadStart}, quiet.settled)
	b.add("load_lost", fmt.Sprintf("leads lost in the %s after that", loadWatch), "", &Target{Of: ofMax}, quiet.lost)
	if err != nil || b.o.Busy == 0 {
		return err
	}
	busy, err := b.underLoad(ctx, loadElections, b.o.Busy, loadBusy*time.Millisecond)
	loops := fmt.Sprintf("beside %d busy loops", b.o.Busy)
	b.add("load_busy_start", "the same "+loops+" → all led", "ms", &Target{ofMax, loadBusy}, busy.settled)
	b.add("load_busy_lost", "leads lost "+loops, "", nil, busy.lost)
	b.add("load_busy_after", "end of the loops → all led", "ms", &Target{ofMax, loadAfter}, busy.after)
	b.add("load_busy_after_lost", "leads lost in the 10 s after that", "", &Target{Of: ofMax}, busy.lostAfter)
	return err
}

// underload is what one cold start showed.
type underload struct{ settled, lost, after, lostAfter []float64 }

// underLoad starts agents and programs that want to lead n elections on each host,
// beside busy loops, and watches for a while.
func (b *bench) underLoad(ctx context.Context, n, busy int, watch time.Duration) (u underload, err error) {
	r, err := b.newRig(ctx, b.o.Profile, 0)
	if err != nil {
		return u, err
	}
	defer b.finish(r, &err)
	if _, err := r.agree(ctx); err != nil {
		return u, err
	}
	r.unwatch()
	loops, err := newLoops(busy)
	defer loops.end()
	if err != nil {
		return u, err
	}
	at := time.Now()
	p := newPretenders(ctx, r.cluster.Hosts(), n)
	defer p.close()
	what := fmt.Sprintf("%d elections beside %d busy loops", n, busy)
	settled, err := b.await(ctx, what, p, patience+loadBusy*time.Millisecond)
	u.settled = []float64{millis(settled.Sub(at))}
	if err != nil && busy == 0 {
		return u, err
	}
	lost := p.losses()
	if err := b.watchLeads(ctx, what+", watching", p, watch); err != nil {
		return u, err
	}
	u.lost = []float64{float64(p.losses() - lost)}
	if busy > 0 {
		loops.end()
		at = time.Now()
		if settled, err = b.await(ctx, what+", loops ended", p, 3*patience); err != nil {
			return u, err
		}
		u.after, lost = []float64{millis(settled.Sub(at))}, p.losses()
		if err := b.watchLeads(ctx, what+", loops ended", p, min(watch, 2*tellEvery)); err != nil {
			return u, err
		}
		u.lostAfter = []float64{float64(p.losses() - lost)}
	}
	return u, b.noteCounters(ctx, what, r.cluster.Hosts())
}

// await waits until every election is led, and returns since when.
func (b *bench) await(ctx context.Context, what string, p *pretenders, within time.Duration) (time.Time, error) {
	limit, tell := time.NewTimer(within), time.NewTicker(tellEvery)
	defer limit.Stop()
	defer tell.Stop()
	for {
		if p.led() == len(p.holders) {
			return time.Now(), nil
		}
		select {
		case <-p.moved:
		case <-tell.C:
			b.progress(p.said(what), 0, 0)
		case <-limit.C:
			return time.Now(), fmt.Errorf("wait until %s are all led: %s after %s", what, p.said(""), within)
		case <-ctx.Done():
			return time.Now(), context.Cause(ctx)
		}
	}
}

// watchLeads lets a time pass.
func (b *bench) watchLeads(ctx context.Context, what string, p *pretenders, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := sleep(ctx, min(tellEvery, time.Until(end))); err != nil {
			return err
		}
		b.progress(p.said(what), 0, 0)
	}
	return nil
}

// noteCounters says what the agents counted, so that a bad figure has a reason.
func (b *bench) noteCounters(ctx context.Context, what string, all []*hosts.Host) error {
	for _, h := range all {
		families, err := readMetrics(ctx, h.Config().Socket)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name(), err)
		}
		var said []string
		for _, name := range []string{"steps", "selection_rounds", "nominations", "terms_won", "leases_expired", "suspicions", "messages_dropped"} {
			for _, m := range families["doyen_"+name+"_total"].GetMetric() {
				if v := m.GetCounter().GetValue(); v > 0 {
					said = append(said, fmt.Sprintf("%s %.0f", strings.TrimSpace(name+" "+label(m, "why")), v))
				}
			}
		}
		for _, name := range []string{"step", "state_write"} {
			for _, m := range families["doyen_"+name+"_seconds"].GetMetric() {
				h := m.GetHistogram()
				said = append(said, fmt.Sprintf("%s %.2f ms", name, 1000*h.GetSampleSum()/max(1, float64(h.GetSampleCount()))))
			}
		}
		slices.Sort(said)
		b.progress(fmt.Sprintf("%s: %s: %s", what, h.Name(), strings.Join(said, ", ")), 0, 0)
	}
	return nil
}

// pretenders are programs on each host that want to lead the same elections.
type pretenders struct {
	stop    context.CancelFunc
	clients []*client.Client
	running sync.WaitGroup
	moved   chan struct{}

	mu      sync.Mutex
	holders []int // how many programs lead each election: its agent says one at most
	leading int   // elections that somebody leads
	ended   int   // leads that ended
}

func newPretenders(ctx context.Context, all []*hosts.Host, n int) *pretenders {
	ctx, stop := context.WithCancel(ctx)
	p := &pretenders{stop: stop, moved: make(chan struct{}, 1), holders: make([]int, n)}
	for _, h := range all {
		c := client.New(h.Config().Socket)
		p.clients = append(p.clients, c)
		for i := range n {
			p.running.Go(func() { p.lead(ctx, c, i) })
		}
	}
	return p
}

// lead wants to lead one election, again and again.
func (p *pretenders) lead(ctx context.Context, c *client.Client, i int) {
	for ctx.Err() == nil {
		_ = c.Run(ctx, fmt.Sprintf("bench-%04d", i), func(ctx context.Context, _ uint64) error {
			p.leads(i, 1)
			<-ctx.Done()
			p.leads(i, -1)
			return nil
		}) // ended, or refused: it is tried again
	}
}

func (p *pretenders) leads(i, more int) {
	p.mu.Lock()
	before := p.holders[i]
	p.holders[i] += more
	switch {
	case before == 0:
		p.leading++
	case p.holders[i] == 0:
		p.leading--
	}
	if more < 0 {
		p.ended++
	}
	p.mu.Unlock()
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

// led is how many elections somebody leads now.
func (p *pretenders) led() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leading
}

// losses is how many leads have ended so far.
func (p *pretenders) losses() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *pretenders) said(what string) string {
	return strings.TrimPrefix(fmt.Sprintf("%s: %d of %d led, %d leads lost", what, p.led(), len(p.holders), p.losses()), ": ")
}

func (p *pretenders) close() {
	p.stop()
	p.running.Wait()
	for _, c := range p.clients {
		c.Close()
	}
}

// loops are processes that take all the processor time that they get.
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
		_ = cmd.Process.Kill() // it has not ended before
		_ = cmd.Wait()         // killed
	}
	l.running = nil
}
