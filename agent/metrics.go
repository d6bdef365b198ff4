package agent

import (
	"net/http"
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

// metrics are this agent's, in a separate registry. The two histograms count as things happen;
// all others are read off the picture when they are asked for. Every series has the label
// cluster: one Prometheus may read several clusters.
type metrics struct {
	registry *prometheus.Registry
	of       prometheus.Registerer // the registry, which adds the label
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

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// watch adds the metrics that are read from the running parts.
func (m *metrics) watch(cfg settings.Config, l *loop.Loop, t *transport.Transport) {
	m.of.MustRegister(&reader{loop: l, transport: t, cfg: cfg, desc: newDescs()})
}

// descs describe the metrics of reader.
type descs struct {
	info, lives, leader, known, named, changes, term *prometheus.Desc
	remaining, candidates, expected                  *prometheus.Desc
	quorum, voters, reachable, members, peers        *prometheus.Desc
	warnings, draining                               *prometheus.Desc
	steps, votes, rounds, attempts, won, expired     *prometheus.Desc
	suspicions, messages, dropped                    *prometheus.Desc
	bytes, dials, refused                            *prometheus.Desc
	campaigns, elected, revoked, releases, hooks     *prometheus.Desc
}

func newDescs() descs {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("doyen_"+name, help, labels, nil)
	}
	return descs{
		lives:      d("agent_lives_total", "Process runs of this agent's lineage so far, this one included."),
		info:       d("agent_info", "This agent; always 1.", "name", "version", "algorithm"),
		leader:     d("is_leader", "1 if this agent leads, inside its lease.", "election"),
		known:      d("leader_known", "1 if a leader is known.", "election"),
		named:      d("leader_info", "The leader that is known; always 1, absent while none is.", "election", "leader"),
		changes:    d("leader_changes_total", "How often another agent became the leader, as seen here.", "election"),
		term:       d("term", "The newest term known.", "election"),
		remaining:  d("lease_remaining_seconds", "Time left of the leader's lease, as known here.", "election"),
		candidates: d("candidates", "Agents that can be elected.", "election"),
		expected:   d("election_expected", "1 for each election that the configuration expects.", "election"),
		quorum:     d("quorum", "1 if a majority of the voters can be reached."),
		voters:     d("voters", "Voters of the roster."),
		reachable:  d("voters_reachable", "Voters that can be reached, this agent included."),
		members:    d("members", "Members, by how gossip sees them.", "status"),
		peers:      d("peers_connected", "Members with a direct connection."),
		warnings:   d("warning", "1 for each kind of warning in force.", "code"),
		draining:   d("draining", "1 while this agent is drained."),
		steps:      d("steps_total", "Inputs handled."),
		votes:      d("votes_total", "Votes decided as a voter.", "verdict"),
		rounds:     d("selection_rounds_total", "Selections started."),
		attempts:   d("nominations_total", "Nominations that asked for votes."),
		won:        d("terms_won_total", "Terms this agent won."),
		expired:    d("leases_expired_total", "Own leases that ended without a renewal."),
		suspicions: d("suspicions_total", "Leaders suspected by silence."),
		messages:   d("messages_total", "Messages, by kind.", "direction", "kind"),
		dropped:    d("messages_dropped_total", "Messages dropped, by part and reason.", "part", "why"),
		bytes:      d("transport_bytes_total", "Bytes of messages, before encryption.", "direction"),
		dials:      d("transport_dials_total", "Attempts at a connection.", "outcome"),
		refused:    d("transport_refusals_total", "Connections refused, by reason.", "why"),
		campaigns:  d("campaigns", "Programs of this host that are candidates."),
		elected:    d("campaigns_elected_total", "Programs notified that they are elected."),
		revoked:    d("campaigns_revoked_total", "Programs notified to stop."),
		releases:   d("campaign_releases_total", "Terms of programs, by how it was known that they had stopped.", "kind"),
		hooks:      d("hook_failures_total", "Hooks that failed at the start of a leadership."),
	}
}

// reader turns the newest picture into metrics.
type reader struct {
	loop      *loop.Loop
	transport *transport.Transport
	cfg       settings.Config
	desc      descs
}

// Describe sends nothing: the labels change while the agent runs.
func (r *reader) Describe(chan<- *prometheus.Desc) {}

func (r *reader) Collect(out chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType) func(*prometheus.Desc, float64, ...string) {
		return func(d *prometheus.Desc, v float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
		}
	}
	gauge, counter := send(prometheus.GaugeValue), send(prometheus.CounterValue)
	r.elections(gauge, counter)
	r.cluster(gauge)
	r.counters(counter)
	r.network(counter)
	r.programs(gauge, counter)
}

func (r *reader) programs(gauge, counter func(*prometheus.Desc, float64, ...string)) {
	s := r.loop.Actors.Stats()
	gauge(r.desc.campaigns, float64(s.Candidacies))
	counter(r.desc.elected, float64(s.Elected))
	counter(r.desc.revoked, float64(s.Revoked))
	counter(r.desc.hooks, float64(s.Failed))
	for kind, n := range s.Released {
		counter(r.desc.releases, float64(n), kind)
	}
}

func (r *reader) elections(gauge, counter func(*prometheus.Desc, float64, ...string)) {
	p, now := r.loop.Picture(), boottime.Now()
	gauge(r.desc.info, 1, r.cfg.Name, Version, r.cfg.Algorithm)
	gauge(r.desc.draining, one(p.Status.Draining))
	for _, name := range p.Expected {
		gauge(r.desc.expected, 1, string(name))
	}
	for _, e := range p.Elections(now, func(string) uint64 { return 0 }) {
		gauge(r.desc.leader, one(e.IsLeader), e.Election)
		gauge(r.desc.known, one(e.Leader != nil), e.Election)
		if e.Leader != nil {
			gauge(r.desc.named, 1, e.Election, e.Leader.Name)
		}
		counter(r.desc.changes, float64(r.loop.Leaders.Changes(e.Election)), e.Election)
		gauge(r.desc.term, float64(e.Term), e.Election)
		gauge(r.desc.remaining, float64(e.LeaseRemainingMS)/1000, e.Election)
		gauge(r.desc.candidates, float64(len(e.Candidates)), e.Election)
	}
}

func (r *reader) cluster(gauge func(*prometheus.Desc, float64, ...string)) {
	p := r.loop.Picture()
	q := p.Status.Quorum
	gauge(r.desc.quorum, one(q.Exists || !q.Enabled))
	gauge(r.desc.voters, float64(q.Voters))
	gauge(r.desc.reachable, float64(q.Reachable))
	gauge(r.desc.peers, float64(len(p.Connected)))
	count := map[membership.Status]int{membership.Alive: 0, "suspect": 0, membership.Dead: 0, membership.Left: 0}
	for _, members := range [][]membership.Member{p.View.Members, p.View.Departed} {
		for _, m := range members {
			count[m.Status]++
		}
	}
	for status, n := range count {
		gauge(r.desc.members, float64(n), string(status))
	}
	counted := map[string]bool{}
	for _, w := range p.Warnings {
		if !counted[w.Code] {
			counted[w.Code] = true
			gauge(r.desc.warnings, 1, w.Code)
		}
	}
}

func (r *reader) counters(counter func(*prometheus.Desc, float64, ...string)) {
	c := r.loop.Picture().Status.Counters
	counter(r.desc.lives, max(1, float64(r.loop.Record.Lineage().Life)))
	counter(r.desc.steps, float64(c.Steps))
	counter(r.desc.votes, float64(c.VotesGranted), "granted")
	counter(r.desc.votes, float64(c.VotesRefused), "refused")
	counter(r.desc.rounds, float64(c.Rounds))
	counter(r.desc.attempts, float64(c.Attempts))
	counter(r.desc.won, float64(c.TermsWon))
	counter(r.desc.expired, float64(c.LeasesExpired))
	counter(r.desc.suspicions, float64(c.Suspicions))
	for kind, n := range c.Sent {
		counter(r.desc.messages, float64(n), "sent", kind)
	}
	for kind, n := range c.Received {
		counter(r.desc.messages, float64(n), "received", kind)
	}
	for why, n := range c.Dropped {
		counter(r.desc.dropped, float64(n), "elector", why)
	}
}

func (r *reader) network(counter func(*prometheus.Desc, float64, ...string)) {
	s := r.transport.Stats()
	counter(r.desc.bytes, float64(s.BytesIn), "received")
	counter(r.desc.bytes, float64(s.BytesOut), "sent")
	counter(r.desc.dials, float64(s.Dials-min(s.Dials, s.DialsFailed)), "succeeded")
	counter(r.desc.dials, float64(s.DialsFailed), "failed")
	for why, n := range s.Dropped {
		counter(r.desc.dropped, float64(n), "transport", why)
	}
	for why, n := range s.Refusals {
		counter(r.desc.refused, float64(n), why)
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
