package scenario

import (
	"fmt"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

// verdict is the result of a condition: whether it holds, since when by the agents' own stamps
// (0: unknown), and what was seen.
type verdict struct {
	holds bool
	since election.Instant
	saw   string
}

type condition struct {
	judge func() verdict
	// asks is true if nothing reports its changes: then it is judged at intervals.
	asks bool
}

const askEvery = 20 * time.Millisecond

// await waits until the condition holds. It is an error if the condition began to hold after
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

// hold demands that the condition holds for the whole time.
func (w *world) hold(c condition, long time.Duration) (string, error) {
	began := boottime.Now()
	v, over, err := w.judge(c, long, false)
	if err == nil && !over {
		err = fmt.Errorf("it ended after %s: %s", boottime.Now().Sub(began).Round(time.Millisecond), v.saw)
	}
	return v.saw, err
}

// judge judges the condition until the outcome equals holds, and returns the last verdict. over
// is true if the limit passed before.
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

// ticks are when a condition is judged even if nothing was reported.
func (w *world) ticks(c condition) *time.Ticker {
	if c.asks {
		return time.NewTicker(askEvery)
	}
	return time.NewTicker(time.Hour)
}
