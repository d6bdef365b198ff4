package loop

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// Picture returns what readers see at present.
func (l *Loop) Picture() *serve.Picture { return l.picture.Load() }

// call makes the loop run f. It returns an error if f may not have run, since the loop or ctx has ended.
func (l *Loop) call(ctx context.Context, f func(now election.Instant)) error {
	done := make(chan struct{})
	select {
	case l.calls <- func() {
		f(l.Clock())
		close(done)
	}:
	case <-l.Done:
		return errors.New(whyAgentStops)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pending are the commands that wait for the elector to reply.
type pending map[election.RequestID]waiting

type waiting struct {
	reply  chan election.Reply // has room for the reply, so that sending it never blocks
	gaveUp func() error        // why the caller no longer waits; nil: the caller waits
}

func (all pending) answer(r election.Reply) {
	if p, ok := all[r.Request]; ok {
		delete(all, r.Request)
		p.reply <- r
	}
}

// Ask makes the loop carry out a command and waits for the elector's reply.
func (l *Loop) Ask(ctx context.Context, build func(election.RequestID) election.Input) (election.Reply, error) {
	reply := make(chan election.Reply, 1)
	err := l.call(ctx, func(election.Instant) {
		maps.DeleteFunc(l.pending, func(_ election.RequestID, w waiting) bool { return w.gaveUp() != nil })
		if len(l.pending) >= maxPending {
			reply <- election.Reply{Refusal: &election.Refusal{Why: words.TooManyCommands}}
			return
		}
		l.requests++
		l.pending[l.requests] = waiting{reply, ctx.Err}
		l.step(build(l.requests))
	})
	if err != nil {
		return election.Reply{}, err
	}
	select {
	case r := <-reply:
		return r, nil
	case <-l.Done:
		return election.Reply{}, errors.New(whyAgentStops)
	case <-ctx.Done():
		return election.Reply{}, ctx.Err()
	}
}

// Ping returns once the loop has answered.
func (l *Loop) Ping(ctx context.Context) error { return l.call(ctx, func(election.Instant) {}) }

// drain notifies the other agents that this one is drained, or no longer drained.
func (l *Loop) drain(on bool) {
	l.draining, l.drainedAt = on, time.Time{}
	if on {
		l.drainedAt = l.Drained()
	}
	if err := l.Gossip.Update(func(m *membership.Member) { m.Draining = on }); err != nil {
		l.Logger.Warn("the other agents can't be notified of the drain", "err", err)
	}
}
