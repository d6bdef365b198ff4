package loop

import (
	"context"
	"errors"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// ask gives a command to the elector, and keeps the channel for its reply.
func (l *Loop) ask(a ask) {
	if a.build == nil {
		a.reply <- election.Reply{}
		return
	}
	for id, p := range l.pending {
		select {
		case <-p.gone:
			delete(l.pending, id)
		default:
		}
	}
	if len(l.pending) >= maxPending {
		a.reply <- election.Reply{Refusal: &election.Refusal{Why: words.TooManyCommands}}
		return
	}
	l.requests++
	l.pending[l.requests] = waiting{reply: a.reply, gone: a.gone}
	l.step(a.build(l.requests))
}

func (all pending) answer(r election.Reply) {
	if p, ok := all[r.Request]; ok {
		delete(all, r.Request)
		p.reply <- r
	}
}

// Picture returns what readers see now.
func (l *Loop) Picture() *serve.Picture { return l.picture.Load() }

// Ask has the loop carry out a command and waits for the elector's reply.
func (l *Loop) Ask(ctx context.Context, build func(election.RequestID) election.Input) (election.Reply, error) {
	a := ask{build: build, reply: make(chan election.Reply, 1), gone: ctx.Done()}
	select {
	case l.asks <- a:
	case <-l.Done:
		return election.Reply{}, errors.New("the agent stops")
	case <-ctx.Done():
		return election.Reply{}, ctx.Err()
	}
	select {
	case r := <-a.reply:
		return r, nil
	case <-l.Done:
		return election.Reply{}, errors.New("the agent stops")
	case <-ctx.Done():
		return election.Reply{}, ctx.Err()
	}
}

// Ping returns once the loop has answered.
func (l *Loop) Ping(ctx context.Context) error {
	_, err := l.Ask(ctx, nil)
	return err
}

// ask is a command and the channel for its reply. Without build it only tests whether the loop
// answers.
type ask struct {
	build func(election.RequestID) election.Input
	reply chan election.Reply // has room for the reply
	gone  <-chan struct{}     // closed: the caller no longer waits
}

// pending are the commands that wait for the elector's reply.
type pending map[election.RequestID]waiting

type waiting struct {
	reply chan election.Reply
	gone  <-chan struct{} // closed: the caller no longer waits
}

// drain notifies the other agents that this one is drained, or is not any more.
func (l *Loop) drain(on bool) {
	l.draining, l.drainedAt = on, time.Time{}
	if on && l.Drained != nil {
		l.drainedAt = l.Drained()
	}
	if err := l.Gossip.Update(func(m *membership.Member) { m.Draining = on }); err != nil {
		l.Logger.Warn("the other agents can't be notified of the drain", "err", err)
	}
}
