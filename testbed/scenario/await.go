package scenario

import (
	"fmt"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
)

// verdict is what a condition finds: whether it holds, since when by the
// agents' own stamps (0: that has none), and what was seen.
type verdict struct {
	holds bool
	since election.Instant
	saw   string
}

// condition is what can be expected of hosts and programs.
type condition struct {
	judge func() verdict
	// asks says that nothing reports when it changes: it is judged at intervals.
	asks bool
}

const askEvery = 20 * time.Millisecond

// await waits until the condition holds, and demands that it came to hold by
// the deadline.
func (w *world) await(c condition, from election.Instant, within time.Duration) (string, error) {
	deadline := from.Add(within)
	late := time.NewTimer(deadline.Sub(boottime.Now()) + deliverySlack)
	defer late.Stop()
	tick := w.ticks(c)
	defer tick.Stop()
	for {
		moved, v := w.lab.Moved(), c.judge()
		now := boottime.Now()
		if v.since == 0 {
			v.since = now
		}
		switch {
		case v.holds && v.since > deadline:
			return v.saw, fmt.Errorf("it came %s late, %s after the fault: %s", v.since.Sub(deadline).Round(time.Millisecond), v.since.Sub(from).Round(time.Millisecond), v.saw)
		case v.holds:
			return fmt.Sprintf("%s, after %s", v.saw, max(v.since.Sub(from), 0).Round(100*time.Microsecond)), nil
		}
		select {
		case <-moved:
		case <-tick.C:
		case <-late.C:
			return v.saw, fmt.Errorf("not within %s; instead: %s", within, v.saw)
		case <-w.ctx.Done():
			return v.saw, fmt.Errorf("interrupted; so far: %s", v.saw)
		}
	}
}

// hold demands that the condition goes on to hold for that long.
func (w *world) hold(c condition, long time.Duration) (string, error) {
	began := boottime.Now()
	end := time.NewTimer(long)
	defer end.Stop()
	tick := w.ticks(c)
	defer tick.Stop()
	for {
		moved, v := w.lab.Moved(), c.judge()
		if !v.holds {
			return v.saw, fmt.Errorf("it ended after %s: %s", boottime.Now().Sub(began).Round(time.Millisecond), v.saw)
		}
		select {
		case <-moved:
		case <-tick.C:
		case <-end.C:
			return v.saw, nil
		case <-w.ctx.Done():
			return v.saw, fmt.Errorf("interrupted; so far: %s", v.saw)
		}
	}
}

// ticks are the moments at which a condition is judged though nothing was reported.
func (w *world) ticks(c condition) *time.Ticker {
	if c.asks {
		return time.NewTicker(askEvery)
	}
	return time.NewTicker(time.Hour)
}
