package agent

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/doyen-election/doyen/agent/loop"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// metrics are the metrics of this agent, in a separate registry. Each write and each step updates its histogram.
// All other metrics are computed at each request. Every series has the label cluster, since one Prometheus may
// read several clusters.
type metrics struct {
	registry *prometheus.Registry
	of       prometheus.Registerer // the same registry, with the label cluster added
	fsync    histogram
	step     histogram
}

type histogram struct{ prometheus.Histogram }

func (h histogram) observe(d time.Duration) { h.Observe(d.Seconds()) }

func newMetrics(cluster string) *metrics {
	registry := prometheus.NewRegistry()
	m := &metrics{
		registry: registry,
		of:       prometheus.WrapRegistererWith(prometheus.Labels{"cluster": cluster}, registry),
		fsync: histogram{prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "doyen_state_write_seconds", Help: "How long it took to make a state durable.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		})},
		step: histogram{prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "doyen_step_seconds", Help: "How long the loop took for one input.",
			Buckets: prometheus.ExponentialBuckets(0.000004, 4, 10),
		})},
	}
	m.of.MustRegister(m.fsync, m.step, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// handler answers without compression, which would keep a megabyte of memory for some kilobytes of text.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true})
}

// watch adds the metrics that are computed from the running parts.
func (m *metrics) watch(cfg settings.Config, l *loop.Loop, t *transport.Transport) {
	m.of.MustRegister(&reader{loop: l, transport: t, cfg: cfg})
}

// reader computes metrics from what the running parts show at each request.
type reader struct {
	loop      *loop.Loop
	transport *transport.Transport
	cfg       settings.Config
}

// Describe sends nothing, since only Collect makes the descriptions. The registry permits that.
func (r *reader) Describe(chan<- *prometheus.Desc) {}

func (r *reader) Collect(out chan<- prometheus.Metric) {
	to := scrape(out)
	r.elections(to)
	r.cluster(to)
	r.counters(to)
	r.network(to)
	r.programs(to)
	r.jobs(to)
}

// jobs sends the metrics of jobs. They come from the elections' words. A cron job's word also holds its counts,
// so the next leader continues them.
func (r *reader) jobs(to scrape) {
	runs := to.counter("job_runs_total", "Occurrences of a cron job, by how they ended; missed ones never ran.", "election", "end") // not "job": Prometheus has a label of that name
	running := to.gauge("job_running", "1 while an occurrence of the job is claimed.", "election")
	finished := to.gauge("job_last_end_timestamp_seconds", "When the job's newest occurrence ended, by the clock of the host that ran it.", "election", "end")
	for _, j := range r.loop.Picture().Jobs {
		for end, n := range j.Total {
			runs(float64(n), j.Election, end)
		}
		running(one(j.Running != nil), j.Election)
		if j.Last != nil {
			finished(float64(j.Last.When.Unix()), j.Election, j.Last.End)
		}
	}
}

// scrape receives the metrics of one answer.
type scrape chan<- prometheus.Metric

// series sends one metric at each call: a value, and the values of its labels.
type series func(v float64, values ...string)

func (out scrape) gauge(name, help string, labels ...string) series {
	return out.series(prometheus.GaugeValue, name, help, labels)
}

func (out scrape) counter(name, help string, labels ...string) series {
	return out.series(prometheus.CounterValue, name, help, labels)
}

func (out scrape) series(kind prometheus.ValueType, name, help string, labels []string) series {
	desc := prometheus.NewDesc("doyen_"+name, help, labels, nil)
	return func(v float64, values ...string) {
		out <- prometheus.MustNewConstMetric(desc, kind, v, values...)
	}
}

func (r *reader) programs(to scrape) {
	c := &r.loop.Actors.Counters
	to.gauge("campaigns", "Programs of this host that are candidates.")(float64(c.Candidacies.Load()))
	to.counter("campaigns_elected_total", "Programs notified that they are elected.")(float64(c.Elected.Load()))
	to.counter("campaigns_revoked_total", "Programs notified to stop.")(float64(c.Revoked.Load()))
	to.counter("hook_failures_total", "Hooks that failed at the start of a leadership.")(float64(c.Failed.Load()))
	released := to.counter("campaign_releases_total", "Terms of programs, by how it was known that they had stopped.", "kind")
	released(float64(c.ByReceipt.Load()), "receipt")
	released(float64(c.ByProof.Load()), "proof")
	released(float64(c.ByDeadline.Load()), "deadline")
}

func (r *reader) elections(to scrape) {
	p, now := r.loop.Picture(), boottime.Now()
	to.gauge("agent_info", "This agent; always 1.", "name", "version", "algorithm")(1, r.cfg.Name, Version, r.cfg.Algorithm)
	to.gauge("draining", "1 while this agent is drained.")(one(p.Status.Draining))
	expected := to.gauge("election_expected", "1 for each election that the configuration expects.", "election")
	for _, name := range p.Expected {
		expected(1, string(name))
	}
	leads := to.gauge("is_leader", "1 if this agent leads, inside its lease.", "election")
	known := to.gauge("leader_known", "1 if a leader is known.", "election")
	named := to.gauge("leader_info", "The leader that is known; always 1, absent while none is.", "election", "leader")
	changes := to.counter("leader_changes_total", "How often another agent became the leader, as seen here.", "election")
	vacant := to.counter("vacant_seconds_total", "Time in which this agent ran and knew no leader.", "election")
	term := to.gauge("term", "The newest term known.", "election")
	remaining := to.gauge("lease_remaining_seconds", "Time left of the leader's lease, as known here.", "election")
	candidates := to.gauge("candidates", "Agents that can be elected.", "election")
	for _, e := range p.Elections(now, func(string) uint64 { return 0 }) {
		leads(one(e.IsLeader), e.Election)
		known(one(e.Leader != nil), e.Election)
		if e.Leader != nil {
			named(1, e.Election, e.Leader.Name)
		}
		n, without := r.loop.Leaders.Count(now, e.Election)
		changes(float64(n), e.Election)
		vacant(without.Seconds(), e.Election)
		term(float64(e.Term), e.Election)
		remaining(float64(e.LeaseRemainingMS)/1000, e.Election)
		candidates(float64(len(e.Candidates)), e.Election)
	}
}

func (r *reader) cluster(to scrape) {
	p := r.loop.Picture()
	q := p.Status.Quorum
	to.gauge("quorum", "1 if a majority of the voters can be reached.")(one(q.Exists || !q.Enabled))
	to.gauge("voters", "Voters of the roster.")(float64(q.Voters))
	to.gauge("voters_reachable", "Voters that can be reached, this agent included.")(float64(q.Reachable))
	to.gauge("peers_connected", "Members with a direct connection.")(float64(len(p.Connected)))
	count := map[membership.Status]int{membership.Alive: 0, "suspect": 0, membership.Dead: 0, membership.Left: 0}
	for _, m := range slices.Concat(p.View.Members, p.Departed()) {
		count[m.Status]++
	}
	members := to.gauge("members", "Members, by how gossip sees them.", "status")
	for status, n := range count {
		members(float64(n), string(status))
	}
	warning, counted := to.gauge("warning", "1 for each kind of warning in force.", "code"), map[string]bool{}
	for _, w := range p.Warnings {
		if !counted[w.Code] {
			counted[w.Code] = true
			warning(1, w.Code)
		}
	}
}

func (r *reader) counters(to scrape) {
	c := r.loop.Picture().Status.Counters
	to.counter("agent_lives_total", "Process runs of this agent's lineage so far, this one included.")(max(1, float64(r.loop.Record.Lineage().Life)))
	to.counter("steps_total", "Inputs handled.")(float64(c.Steps))
	votes := to.counter("votes_total", "Votes decided as a voter.", "verdict")
	votes(float64(c.VotesGranted), "granted")
	votes(float64(c.VotesRefused), "refused")
	to.counter("selection_rounds_total", "Selections started.")(float64(c.Rounds))
	to.counter("nominations_total", "Nominations that asked for votes.")(float64(c.Attempts))
	to.counter("terms_won_total", "Terms this agent won.")(float64(c.TermsWon))
	to.counter("leases_expired_total", "Own leases that ended without a renewal.")(float64(c.LeasesExpired))
	to.counter("suspicions_total", "Leaders suspected by silence.")(float64(c.Suspicions))
	messages := to.counter("messages_total", "Messages, by kind.", "direction", "kind")
	for kind, n := range c.Sent {
		messages(float64(n), "sent", kind)
	}
	for kind, n := range c.Received {
		messages(float64(n), "received", kind)
	}
	dropped := to.counter("messages_dropped_total", "Messages dropped, by part and reason.", "part", "why")
	for why, n := range c.Dropped {
		dropped(float64(n), "elector", why)
	}
	for why, n := range r.transport.Stats().Dropped {
		dropped(float64(n), "transport", why)
	}
}

func (r *reader) network(to scrape) {
	s := r.transport.Stats()
	bytes := to.counter("transport_bytes_total", "Bytes of messages, before encryption.", "direction")
	bytes(float64(s.BytesIn), "received")
	bytes(float64(s.BytesOut), "sent")
	dials := to.counter("transport_dials_total", "Attempts at a connection.", "outcome")
	dials(float64(s.Dials-min(s.Dials, s.DialsFailed)), "succeeded")
	dials(float64(s.DialsFailed), "failed")
	refused := to.counter("transport_refusals_total", "Connections refused, by reason.", "why")
	for why, n := range s.Refusals {
		refused(float64(n), why)
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
