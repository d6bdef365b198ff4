package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	manyHolders   = 5    // how many agents hold the many elections
	manyElections = 1000 // each agent leads a fifth of them
	// loadElections is how many elections have a candidate on each host.
	loadElections = 1000
	// loadBusy is the longest time allowed from a cold start until all of these are led beside busy loops.
	loadBusy = 30 * time.Second
	// loadWatch is the time in which no program may lose a lead that it won.
	loadWatch = time.Minute
	// busyLoops is how many busy loops run beside the agents.
	busyLoops = 4
)

// manyElections measures what a thousand elections cost five agents. Then it kills one agent,
// and measures how soon all elections that the agent led are led again.
func (b *bench) manyElections(ctx context.Context) error {
	defer func(was Point) { b.on = was }(b.on)
	b.on.Agents = manyHolders
	return b.many(ctx, manyElections)
}

func (b *bench) many(ctx context.Context, n int) (err error) {
	return b.quiet(ctx, b.config(), func(r *rig, _ *hosts.Host) error {
		all := r.Cluster.Hosts()
		c := newCandidates(ctx, all, n)
		defer c.close()
		for _, second := range []bool{false, true} { // all first candidates lead before the second ones start
			c.where(func(i, host int) bool { return host == hostOf(i, len(all), second) })
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
		victim := b.rng.IntN(len(all))
		return b.again(ctx, c, "ManyElections", victim, all[victim].Kill)
	})
}

// drained measures the drain of a host that leads half of n elections, each with a candidate on every host.
func (b *bench) drained(ctx context.Context, n int) error {
	return b.quiet(ctx, b.config(), func(r *rig, _ *hosts.Host) error {
		c := newCandidates(ctx, r.Cluster.Hosts(), n)
		defer c.close()
		for _, first := range []bool{true, false} {
			c.where(func(i, host int) bool { return first == (host == i%2) })
			if _, err := b.await(ctx, "every election to be led", c, 2*patience, c.allLed); err != nil {
				return err
			}
		}
		if err := observe.Sleep(ctx, idleSettle); err != nil { // each agent is to know the candidates of the others
			return err
		}
		return b.again(ctx, c, "Drain", 0, func() (election.Instant, error) {
			at := boottime.Now()
			_, err := c.clients[0].Drain(ctx, true)
			return at, err
		})
	})
}

// again calls end, which ends all leads of the victim, and measures how soon other hosts lead those elections.
func (b *bench) again(ctx context.Context, c *candidates, name string, victim int, end func() (election.Instant, error)) error {
	before := c.victories()
	at, err := end()
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
			b.add(name, took(v.at.Sub(at), perTakeover), took(v.after, noLeader))
		}
	}
	return err
}

// hostOf returns the host of an election's first or second candidate. The second candidates of
// the elections that one host leads are spread over all other hosts.
func hostOf(i, hosts int, second bool) int {
	if !second {
		return i % hosts
	}
	return (i + 1 + i/hosts%(hosts-1)) % hosts
}

// load measures how soon all of a thousand elections, with a candidate on every host, are led on an idle and a busy machine.
func (b *bench) load(ctx context.Context) error {
	err := b.underLoad(ctx, loadElections, 0, loadWatch)
	if err == nil {
		err = b.underLoad(ctx, loadElections, busyLoops, loadBusy)
	}
	return err
}

// underLoad starts agents, busy loops, and on each host programs that want to lead n elections. When all
// are led, it watches them for a while. If there were busy loops, it then ends them, and waits and watches again.
func (b *bench) underLoad(ctx context.Context, n, busy int, watch time.Duration) (err error) {
	return b.quiet(ctx, b.config(), func(r *rig, _ *hosts.Host) error {
		loops, err := hosts.StartBusy(busy, (*exec.Cmd).Start)
		defer loops.End()
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
			if err != nil && name != "Load/loops=some" { // beside busy loops, a limit that has passed does not end the measurement
				return err
			}
			lost, err := b.watchLeads(ctx, what+", watching", c, watch)
			if err == nil {
				b.add(name, value{Value: lost, Unit: leadsLost})
			}
			return err
		}
		c.where(everywhere)
		if err := phase(what, name, patience+loadBusy, watch); err != nil {
			return err
		}
		if busy > 0 {
			loops.End()
			if err := phase(what+", loops ended", "Load/loops=ended", 3*patience, min(watch, 2*tellEvery)); err != nil {
				return err
			}
		}
		return nil
	})
}

const tellEvery = 5 * time.Second

// candidates are programs on several hosts that want to lead many elections.
type candidates struct {
	ctx     context.Context
	stop    context.CancelFunc
	clients []*client.Client // one for each host
	running sync.WaitGroup
	work    func(*client.Leadership) // what a program does while it leads; nil: nothing

	mu      sync.Mutex
	won     []victory          // by election: the newest victory
	holders []int              // by election: how many programs lead it; 2 if the next leader is noticed before the last one's end
	ends    []election.Instant // by election: when a program last ceased to lead it
	leading int                // how many elections some program leads
	lost    int                // how many leads have ended
}

// victory is where and when a program was elected.
type victory struct {
	host  int
	at    election.Instant
	after time.Duration // how long no program had led before; only of a program that is not the election's first
}

// newCandidates prepares for n elections. No program is a candidate yet.
func newCandidates(ctx context.Context, all []*hosts.Host, n int) *candidates {
	c := &candidates{won: make([]victory, n), holders: make([]int, n), ends: make([]election.Instant, n),
		clients: each.Of(all, func(h *hosts.Host) *client.Client { return client.New(h.Config().Socket) })}
	c.ctx, c.stop = context.WithCancel(ctx)
	return c
}

func everywhere(int, int) bool { return true }

func (c *candidates) where(on func(i, host int) bool) {
	for host := range c.clients {
		for i := range c.won {
			if on(i, host) {
				c.start(i, host)
			}
		}
	}
}

// start starts a candidate. Whenever it loses a lead, it becomes a candidate again.
func (c *candidates) start(i, host int) {
	c.running.Go(func() {
		for c.ctx.Err() == nil {
			if c.work != nil {
				c.works(i, host)
				continue
			}
			_ = c.clients[host].Run(c.ctx, fmt.Sprintf("bench-%04d", i), func(ctx context.Context, _ uint64) error {
				c.leads(i, host, 1)
				<-ctx.Done()
				c.leads(i, host, -1)
				return nil
			}) // the lead ended, or was refused: try again
		}
	})
}

// works campaigns once for candidate i, and works while it leads.
func (c *candidates) works(i, host int) {
	l, err := c.clients[host].Campaign(c.ctx, fmt.Sprintf("bench-%04d", i))
	if err != nil {
		return
	}
	c.leads(i, host, 1)
	c.work(l)
	c.leads(i, host, -1)
	_ = l.Close()
}

func (c *candidates) leads(i, host, more int) {
	at := boottime.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.holders[i]
	c.holders[i] += more
	switch {
	case before == 0:
		c.leading++
	case c.holders[i] == 0:
		c.leading--
	}
	if more > 0 {
		c.won[i] = victory{host: host, at: at}
		if before == 0 {
			c.won[i].after = at.Sub(c.ends[i])
		}
	} else {
		c.ends[i] = at
		c.lost++
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
	shown := began
	err := until(ctx, what, within, lookEvery, func(context.Context) (bool, error) {
		if time.Since(shown) >= tellEvery {
			shown = time.Now()
			b.progress(c.describe(what), 0, 0)
		}
		return done(), nil
	})
	if err != nil {
		err = fmt.Errorf("%w: %s after %s", err, c.describe(""), within)
	}
	return time.Since(began), err
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

const (
	// atOnceVoters is how many of the agents are voters. Real clusters of many agents have as few;
	// other parts of the testbed have more.
	atOnceVoters = 5
	// atOncePatience is how long agents that all start at once may take to agree, and how long
	// each may then take until it is connected to all others.
	atOncePatience = 240 * time.Second
	// askAtOnce is how often an agent is asked whether it is connected to all others.
	askAtOnce = 250 * time.Millisecond
)

// atOnce starts all agents as fast as the machine makes processes. It measures how long they
// take to agree, and until each is connected to each.
func (b *bench) atOnce(ctx context.Context) error {
	return b.repeat("StartAtOnce", b.rounds(1), func() (err error) {
		c := b.config()
		voters := c.Names()[:min(atOnceVoters, c.Agents)]
		c.Adjust = func(_ int, a *settings.Config) { a.Voters = voters }
		r, err := b.newRig(ctx, c, 0)
		if err != nil {
			return err
		}
		defer b.finish(r, &err)
		a, err := r.Agree(ctx, atOncePatience)
		if err != nil {
			return err
		}
		for _, h := range r.Cluster.Hosts() {
			failed, err := r.connected(ctx, h, b.on.Agents-1)
			if err != nil {
				return err
			}
			b.add("StartAtOnce", value{Value: failed, Unit: "failed-dials/agent"})
		}
		connected := boottime.Now()
		misled, err := countMisled(r.Cluster.Hosts())
		b.add("StartAtOnce", took(r.started.Sub(r.first), "ms-started/start"), took(a.At.Sub(r.first), "ms-agreed/start"),
			took(connected.Sub(r.first), "ms-connected/start"), value{Value: misled, Unit: "misled-agents"})
		return err
	})
}

// countMisled counts the agents that have logged a refusal.
func countMisled(all []*hosts.Host) (misled float64, err error) {
	for _, h := range all {
		log, err := os.ReadFile(h.Log())
		if err != nil {
			return 0, fmt.Errorf("read what %s logged: %w", h.Name(), err)
		}
		if strings.Contains(string(log), "code=refused_") {
			misled++
		}
	}
	return misled, nil
}

// connected waits until the agent is connected to that many peers, and returns how many of its
// dials have failed.
func (r *rig) connected(ctx context.Context, h *hosts.Host, peers int) (failed float64, err error) {
	what := fmt.Sprintf("%s to be connected to %d peers", h.Name(), peers)
	err = until(ctx, what, atOncePatience, askAtOnce, func(ctx context.Context) (bool, error) {
		m, err := lab.ReadMetrics(ctx, h)
		failed = m.Sum("doyen_transport_dials_total", "outcome=failed")
		return int(m.Sum("doyen_peers_connected")) >= peers, err
	})
	return failed, err
}
