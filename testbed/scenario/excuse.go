package scenario

import (
	"time"

	"github.com/doyen-election/doyen/testbed/hiccup"
)

// excused tells for how long the machine stood still while the script was played,
// if it was at least a heartbeat in all: agents that are not let run, and packets
// that nobody passes on, look like faults that no script asked for. "" if it was
// less, and always when what must hold on any machine did not hold.
func (w *world) excused() string {
	hiccups := w.meter.Since(w.began)
	total, _ := hiccup.Total(hiccups)
	if total < w.patience() || w.broken() {
		return ""
	}
	return hiccup.Describe(hiccups)
}

// patience is a heartbeat: what lasts less is within what leases leave room for.
func (w *world) patience() time.Duration { return w.cluster.Hosts()[0].Config().Heartbeat }

// broken reports whether two led at once, or a term did not rise.
func (w *world) broken() bool {
	if !w.config.Quorum {
		return false
	}
	overlaps, err := w.overlaps("")
	falls, _, _, _ := termRises(w, "", nil)
	return err != nil || len(overlaps) > 0 || falls > 0
}
