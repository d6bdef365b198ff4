package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/doyen-election/doyen/api"
)

const (
	// A follower that lost its agent asks again after againFirst, then after twice that, up to
	// againMost.
	againFirst = 20 * time.Millisecond
	againMost  = 500 * time.Millisecond
)

// Follow is Watch for a reader that outlives the agent's process: it starts with a snapshot, and
// an agent that goes away is asked again until it answers or has been away for so long. What
// changed meanwhile follows then: an element of type restarted if the agent goes on as it was,
// and the changes since. An agent that no longer knows what changed sends an element of type
// lagged. The errors are those of Watch. One that refuses the first request ends the sequence at
// once.
func (c *Client) Follow(ctx context.Context, name string, away time.Duration) iter.Seq2[api.Change, error] {
	return func(yield func(api.Change, error) bool) {
		var index uint64
		var lost time.Time // when the agent went away; zero: it is there, or never was
		var why error      // how it went away
		pause := againFirst
		for {
			begun := index > 0
			var ended error
			for change, err := range c.Watch(ctx, name, index) {
				if err != nil {
					ended = err
					break
				}
				index, lost, pause = change.Index, time.Time{}, againFirst
				if begun && change.Type == api.ChangeSnapshot {
					continue // the changes that follow lead up to it
				}
				if !yield(change, nil) {
					return
				}
			}
			if lost.IsZero() {
				lost, why = time.Now(), ended
			}
			switch {
			case index == 0 || !passes(ended):
				why = ended
			case time.Since(lost) >= away:
			case sleep(ctx, pause):
				pause = min(2*pause, againMost)
				continue
			default:
				why = c.unanswered(ctx, ctx.Err())
			}
			yield(api.Change{}, why)
			return
		}
	}
}

// passes reports whether what ended a watch may be over once the agent has started again. Just
// after its start it may not know the election yet, or have no place.
func passes(err error) bool {
	if refused, ok := errors.AsType[*APIError](err); ok {
		return refused.Status == http.StatusNotFound || refused.Status == http.StatusServiceUnavailable
	}
	_, unreachable := errors.AsType[*UnreachableError](err)
	return unreachable
}

// sleep waits, and reports whether it was not interrupted.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
