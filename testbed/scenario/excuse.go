package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hiccup"
	"github.com/doyen-election/doyen/testbed/lab"
)

// excused describes the pauses of the machine that may be why the script failed. It returns
// "" if there were none, or if a rule is broken that holds whatever the machine does.
func (w *world) excused() string {
	described := excuse(w.meter.Between(w.doubtful(), boottime.Now()), w.agents().Heartbeat)
	if described != "" && w.brokenSoon() {
		return ""
	}
	return described
}

// excuse describes hiccups of a heartbeat and more: agents that are not let run for
// so long, and packets that are not passed on, look like faults that no script asked
// for. What lasts less is within what leases leave room for.
func excuse(hiccups []hiccup.Hiccup, heartbeat time.Duration) string {
	if _, longest := hiccup.Total(hiccups); longest < heartbeat {
		return ""
	}
	return hiccup.Describe(hiccups)
}

// reportHiccups adds the pauses of the machine to a verbose transcript.
func (w *world) reportHiccups() {
	if hiccups := w.meter.Between(w.began, boottime.Now()); w.o.Verbose && len(hiccups) > 0 {
		w.t.Log(hiccup.Describe(hiccups))
	}
}

// doubtful is since when a hiccup may have caused the failure: from a lease before
// the instant that the script counts and times from.
func (w *world) doubtful() election.Instant {
	from := w.began
	if w.marked != 0 {
		from = min(w.marked, w.acted)
	}
	return from.Add(-w.agents().Lease)
}

// agents is the configuration that all have in common.
func (w *world) agents() agent.Config { return w.lab.Cluster.Hosts()[0].Config() }

// brokenSoon gives a leader that leads too long the time to meet its successor, and
// reports what is broken then.
func (w *world) brokenSoon() bool {
	late := time.NewTimer(w.agents().Lease + deliverySlack)
	defer late.Stop()
	select {
	case <-late.C:
	case <-w.ctx.Done():
	}
	w.settle()
	return w.broken()
}

// broken reports whether two led at once, a term did not rise, or an agent ended
// by itself as one does that panics.
func (w *world) broken() bool {
	crashed := slices.ContainsFunc(w.lab.Exits(), panicked)
	if crashed || !w.config.Quorum {
		return crashed
	}
	overlaps, err := w.overlaps("")
	falls, _, _, _ := termRises(w, "", nil)
	return err != nil || len(overlaps) > 0 || falls > 0
}

// panicked reports the exit status that Go gives a panic.
func panicked(e lab.Exit) bool { return strings.Contains(e.How, "exit status 2") }
