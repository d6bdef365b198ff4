package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// ErrLate reports that the awaited event did not happen in time.
var ErrLate = errors.New("it took too long")

// lookEvery is how often Until checks its condition if nothing is reported.
const lookEvery = 5 * time.Millisecond

// Until waits until the condition holds. It returns ErrLate if the limit passes before.
func (l *Lab) Until(ctx context.Context, limit time.Duration, what string, condition func() bool) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		moved := l.Moved()
		if condition() {
			return nil
		}
		select {
		case <-moved:
		case <-tick.C:
		case <-late.C:
			return fmt.Errorf("wait for %s: %w: not within %s: %s", what, ErrLate, limit, l.Picture())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Agree waits until all running agents name the same leader of the default election.
func (l *Lab) Agree(ctx context.Context, limit time.Duration) (observe.Agreement, error) {
	var a observe.Agreement
	err := l.Until(ctx, limit, "agreement", func() (ok bool) {
		running := l.Running()
		l.Look(func(e *observe.Elections) { a, ok = e.Of(string(election.Default)).Agreement(running) })
		return ok && len(running) > 0
	})
	return a, err
}

func (l *Lab) Ended(ctx context.Context, limit time.Duration, all ...*hosts.Host) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	for _, h := range all {
		select {
		case <-h.Done():
		case <-late.C:
			return fmt.Errorf("%s has not ended: %w: not in %s", h.Name(), ErrLate, limit)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (l *Lab) Picture() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, name := range l.followed {
		of := name + ": "
		if len(l.followed) == 1 {
			of = ""
		}
		for _, h := range l.Cluster.Hosts() {
			s := l.seen.Of(name).View(h.Name())
			all = append(all, fmt.Sprintf("%s%s is %s, %s, names %q, term %d", of, h.Name(), h.Status(), s.State, s.Leader, s.Term))
		}
	}
	return strings.Join(all, "; ")
}
