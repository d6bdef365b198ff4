package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
)

const (
	// atOnceVoters are fewer than a cluster of the testbed usually has: that is
	// how many votes people run beside many agents.
	atOnceVoters = 5
	// atOncePatience is how long agents that all start at once may take to agree.
	// Until that is over, all of them being connected is waited for.
	atOncePatience = 240 * time.Second
	// atOnceFew agents agree within atOnceSoon, more of them within atOnceLater,
	// in milliseconds.
	atOnceFew   = 60
	atOnceSoon  = 15_000
	atOnceLater = 60_000
	// askAtOnce is how often an agent is asked whether it is connected to all.
	askAtOnce = 250 * time.Millisecond
)

// atOnce measures how long all agents take to agree and to be connected, each to
// each, if all of them are started as fast as the machine makes processes.
func (b *bench) atOnce(ctx context.Context) error {
	var all started
	rounds := max(1, b.o.Rounds/10)
	for i := range rounds {
		b.progress("start all at once", i+1, rounds)
		if err := b.startAtOnce(ctx, &all); err != nil {
			return err
		}
	}
	bound := float64(atOnceSoon)
	if b.o.Agents > atOnceFew {
		bound = atOnceLater
	}
	of := fmt.Sprintf("%d agents started at once: ", b.o.Agents)
	b.add("at_once_spawned", of+"first process started → last process started", "ms", nil, all.spawned)
	b.add("at_once_agree", of+"first process started → all agree", "ms", &Target{ofMax, bound}, all.agreed)
	b.add("at_once_connected", of+"first process started → each connected to each", "ms", nil, all.connected)
	b.add("at_once_dials_failed", of+"dials that failed, an agent", "", nil, all.failed)
	b.add("at_once_misled", of+"agents that log a refusal though nothing is misconfigured", "", &Target{ofMax, 0}, all.misled)
	return nil
}

// started is what starts of all agents at once have shown: times in
// milliseconds, and counts.
type started struct{ spawned, agreed, connected, failed, misled []float64 }

func (b *bench) startAtOnce(ctx context.Context, all *started) (err error) {
	c := b.config(b.o.Profile)
	voters := c.Names()[:min(atOnceVoters, c.Agents)]
	c.Adjust = func(_ int, a *agent.Config) { a.Voters = voters }
	r, err := newRig(ctx, c, 0, b.rng)
	if err != nil {
		return err
	}
	defer b.finish(r, &err)
	all.spawned = append(all.spawned, millis(r.started.Sub(r.first)))
	a, err := r.agreeWithin(ctx, atOncePatience)
	if err != nil {
		return err
	}
	all.agreed = append(all.agreed, millis(a.At.Sub(r.first)))
	for _, h := range r.cluster.Hosts() {
		failed, err := r.connected(ctx, h, b.o.Agents-1)
		if err != nil {
			return err
		}
		all.failed = append(all.failed, failed)
	}
	all.connected = append(all.connected, millis(boottime.Now().Sub(r.first)))
	misled := 0.0
	for _, h := range r.cluster.Hosts() {
		log, err := os.ReadFile(h.Log())
		if err != nil {
			return fmt.Errorf("read what %s logged: %w", h.Name(), err)
		}
		if strings.Contains(string(log), "code=refused_") {
			misled++
		}
	}
	all.misled = append(all.misled, misled)
	return nil
}

// connected waits until the agent is connected to that many peers, and returns
// how many of its dials have failed.
func (r *rig) connected(ctx context.Context, h *hosts.Host, peers int) (failed float64, err error) {
	for waited := time.Duration(0); waited < atOncePatience; waited += askAtOnce {
		families, err := readMetrics(ctx, h.Config().Socket)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", h.Name(), err)
		}
		for _, m := range families["doyen_transport_dials_total"].GetMetric() {
			if label(m, "outcome") == "failed" {
				failed = m.GetCounter().GetValue()
			}
		}
		for _, m := range families["doyen_peers_connected"].GetMetric() {
			if int(m.GetGauge().GetValue()) >= peers {
				return failed, nil
			}
		}
		if err := r.idle(ctx, askAtOnce); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("wait until %s is connected to %d peers: not within %s", h.Name(), peers, atOncePatience)
}
