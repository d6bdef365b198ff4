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
	v, over, err := w.judge(c, deadline.Sub(boottime.Now())+deliverySlack, true)
	switch {
	case err != nil:
		return v.saw, err
	case over:
		return v.saw, fmt.Errorf("not within %s; instead: %s", within, v.saw)
	case v.since > deadline:
		return v.saw, fmt.Errorf("it came %s late, %s after the fault: %s", v.since.Sub(deadline).Round(time.Millisecond), v.since.Sub(from).Round(time.Millisecond), v.saw)
	}
	return fmt.Sprintf("%s, after %s", v.saw, max(v.since.Sub(from), 0).Round(100*time.Microsecond)), nil
}

// hold demands that the condition goes on to hold for that long.
func (w *world) hold(c condition, long time.Duration) (string, error) {
	began := boottime.Now()
	v, over, err := w.judge(c, long, false)
	if err == nil && !over {
		err = fmt.Errorf("it ended after %s: %s", boottime.Now().Sub(began).Round(time.Millisecond), v.saw)
	}
	return v.saw, err
}

// judge looks at the condition until it holds, or until it does not, and returns
// what it found last. over says that the time was over first.
func (w *world) judge(c condition, limit time.Duration, holds bool) (v verdict, over bool, err error) {
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := w.ticks(c)
	defer tick.Stop()
	for {
		moved, v := w.lab.Moved(), c.judge()
		if v.since == 0 {
			v.since = boottime.Now()
		}
		if v.holds == holds {
			return v, false, nil
		}
		select {
		case <-moved:
		case <-tick.C:
		case <-end.C:
			return v, true, nil
		case <-w.ctx.Done():
			return v, false, fmt.Errorf("interrupted; so far: %s", v.saw)
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
