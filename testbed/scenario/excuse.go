package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hiccup"
	"github.com/doyen-election/doyen/testbed/lab"
)

// excused describes the pauses of the machine that may have made the script fail. It returns ""
// if there were none, or if a rule is broken that holds on any machine.
func (w *world) excused() string {
	described := excuse(w.meter.Between(w.doubtful(), boottime.Now()), w.agents().Heartbeat)
	if described != "" && w.brokenSoon() {
		return ""
	}
	return described
}

// excuse describes the pauses if one lasts at least a heartbeat. Such a pause stops agents and
// packets for so long that it looks like a fault for which no script asked. Leases leave room
// for shorter ones.
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

// doubtful is from when on a pause may have caused the failure: from a lease before the instant
// from which the script counts and times.
func (w *world) doubtful() election.Instant {
	from := w.began
	if w.marked != 0 {
		from = min(w.marked, w.acted)
	}
	return from.Add(-w.agents().Lease)
}

// agents is the configuration that all agents have in common.
func (w *world) agents() settings.Config { return w.lab.Cluster.Hosts()[0].Config() }

// brokenSoon waits until a leader that leads too long has met its successor, and then reports
// whether a rule is broken.
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

// broken reports whether two led at once, a term did not rise, or an agent panicked.
func (w *world) broken() bool {
	crashed := slices.ContainsFunc(w.lab.Exits(), panicked)
	if crashed || !w.config.Quorum {
		return crashed
	}
	overlaps, err := w.overlaps("")
	falls, _, _, _ := termRises(w, "", nil)
	return err != nil || len(overlaps) > 0 || falls > 0
}

// panicked reports whether the exit status is the one that Go gives to a panic.
func panicked(e lab.Exit) bool { return strings.Contains(e.How, "exit status 2") }
