package runner

import (
	"log/slog"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/act/health"
)

// startCheck runs the health check, if there is one, under a separate guard. This host is not a
// candidate before the first success.
func (r *runner) startCheck() {
	if r.Check.Command == "" {
		return
	}
	r.unfit = "no check has succeeded yet"
	pool := guard.NewPool(environment(r.Config), r.nice, "", slog.New(slog.DiscardHandler))
	checks := health.New(r.ctx, pool, func(string) error { return nil }, func(election.Name) bool { return false }, func(_ election.Name, _ func() bool, unhealthy string) {
		r.call(func() { r.judged(unhealthy) })
	}, slog.New(slog.DiscardHandler))
	checks.Set(map[election.Name]health.Check{health.Host: r.Check}, func(election.Name) bool { return false })
}

// judged handles a verdict. unhealthy is why this host may not be a candidate; empty: it may.
func (r *runner) judged(unhealthy string) {
	r.unfit = unhealthy
	switch {
	case unhealthy == "" || r.ending:
	case r.leading:
		r.handOver(unhealthy, 0)
	default:
		r.say("not a candidate in %s: %s", r.Election, unhealthy)
	}
}

// withdraw ends the candidacy of a host that is not healthy and where nothing runs.
func (r *runner) withdraw() {
	if r.candidacy != nil {
		r.candidacy.Close()
		r.candidacy, r.over, r.resuming = nil, false, false
	}
}
