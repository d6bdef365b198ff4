package bench

import (
	"context"
	"fmt"
	"time"
)

// hostsUp is how long fifty hosts may take to start and agree.
const hostsUp = 20 * time.Second

// slack is what a takeover may take beyond the lease that safety demands to
// wait out, in milliseconds.
const slack = 30

func (b *bench) cold(ctx context.Context) error {
	took, whole, err := b.coldStarts(ctx, max(3, b.o.Rounds/5))
	b.add("cold_start", "cold start: last process started → all agree", "ms", b.small(&Target{ofMedian, 500}), took)
	if b.at != nil {
		b.add("cold_start_all", "cold start: first process started → all agree", "ms", &Target{ofMax, millis(hostsUp)}, whole)
	}
	return err
}

func (b *bench) kill(ctx context.Context) error {
	took, err := b.takeovers(ctx, b.o.Profile, "kill -9", b.o.Rounds, killed())
	target := b.small(&Target{ofP99, millis(b.config(b.o.Profile).Lease()) + slack})
	b.add("kill", "kill -9 of the leader → new leader", "ms", target, took)
	return err
}

func (b *bench) local(ctx context.Context) error {
	took, err := b.takeovers(ctx, "local", "kill -9, local profile", b.o.Rounds, killed())
	target := &Target{ofP99, millis(b.config("local").Lease()) + slack}
	b.add("kill_local", "the same, local profile (50 ms / 300 ms)", "ms", target, took)
	return err
}

func (b *bench) handover(ctx context.Context) error {
	rounds := max(3, b.o.Rounds*3/10)
	for _, h := range []struct {
		key, what string
		fault     fault
	}{
		{"resign", "resign", resigned()}, {"transfer", "transfer", transferred()}, {"sigterm", "SIGTERM", terminated()},
	} {
		took, err := b.takeovers(ctx, b.o.Profile, h.what, rounds, h.fault)
		b.add(h.key, h.what+" → new leader", "ms", b.small(&Target{ofMedian, 15}), took)
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) overlap(ctx context.Context) error {
	lasted, err := b.overlaps(ctx, 2*b.o.Rounds)
	b.add("overlap", "two leaders at once, over rounds of kill -9, SIGSTOP, SIGCONT", "ms", &Target{ofMax, 0}, lasted)
	return err
}

func (b *bench) idle(ctx context.Context) error {
	if !canMeasureIdle() {
		b.note("idle cost: it is measured on Linux only")
		return nil
	}
	costs, err := b.measureIdle(ctx)
	if err != nil {
		return err
	}
	costs.each(func(key, who string, all []cost) {
		var rss, pss, cpu []float64
		for _, c := range all {
			rss, pss, cpu = append(rss, c.rssMiB), append(pss, c.pssMiB), append(cpu, c.cpuPercent)
		}
		b.add("idle_rss_"+key, who+": RSS", "MiB", b.small(&Target{ofMax, 20}), rss)
		b.add("idle_pss_"+key, who+": PSS", "MiB", nil, pss)
		b.add("idle_cpu_"+key, who+": CPU of a core", "%", b.small(&Target{ofMax, 0.8}), cpu)
	})
	return nil
}

// leastRate is how many answers a second an agent gives many callers.
const leastRate = 25_000

func (b *bench) query(ctx context.Context) error {
	q, err := b.queries(ctx)
	b.add("query", "GET /v1/elections/default, keep-alive", "µs", &Target{ofMedian, 100}, q.one)
	b.add("query_client", "the same by the Go client, decoded", "µs", nil, q.client)
	b.add("query_rate", fmt.Sprintf("the same, %d callers", callers), "1/s", nil, q.many)
	var apart []float64
	for _, rate := range q.many {
		apart = append(apart, 1e6/rate)
	}
	b.add("query_pace", fmt.Sprintf("the same, %d callers: an answer every", callers), "µs", &Target{ofMedian, 1e6 / leastRate}, apart)
	b.add("query_many", fmt.Sprintf("the same, %d callers: each answer", callers), "µs", &Target{ofP99, 3000}, q.each)
	return err
}

func (b *bench) size(context.Context) error {
	bytes, err := size(b.binary)
	if err != nil {
		return err
	}
	b.add("size", "stripped binary", "MB", &Target{ofMax, 20}, []float64{float64(bytes) / 1e6})
	return nil
}
