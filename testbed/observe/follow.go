package observe

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

type Source struct {
	Agent  string
	Socket string // its path
}

// Event is something seen at one agent: Changed, Polled or Lost.
type Event interface {
	where() (agent, name string, at election.Instant)
}

type Changed struct {
	Agent  string
	Change api.Change
}

// Polled is an agent's answer to the question who leads.
type Polled struct {
	Agent          string
	Sent, Received election.Instant // the agent made the answer in between
	Election       api.Election
}

// Lost says that an agent can no longer be followed, because its process has ended or is
// ending. Follow follows the agent again as soon as it answers.
type Lost struct {
	Agent    string
	Election string
	At       election.Instant
}

func (e Changed) where() (string, string, election.Instant) {
	return e.Agent, e.Change.Election, election.Instant(e.Change.BoottimeNS)
}
func (e Polled) where() (string, string, election.Instant) {
	return e.Agent, e.Election.Election, e.Received
}
func (e Lost) where() (string, string, election.Instant) { return e.Agent, e.Election, e.At }

type Options struct {
	Sources  []Source
	Election string        // "" is the default election
	Poll     time.Duration // between polls of an agent; 0: none
	// Retry is how soon an agent that does not answer is asked again; 0 is 3 ms. That is short
	// enough to see the first changes of a starting agent, and trying a missing socket costs
	// only microseconds. With many agents it should be longer.
	Retry time.Duration
}

const (
	defaultRetry = 3 * time.Millisecond
	// refusedRetry is how soon an agent that refused a watch is asked again. An agent refuses a
	// watch if it does not know the election yet, or serves too many watches.
	refusedRetry = 20 * time.Millisecond
	// pollTimeout bounds a poll: a frozen agent does not answer.
	pollTimeout = time.Second
)

// Follow follows agents until ctx ends. The agents need not run yet, and may end and come
// back. Several goroutines call see with what is seen.
func Follow(ctx context.Context, o Options, see func(Event)) {
	o.Election = cmp.Or(o.Election, string(election.Default))
	if o.Retry <= 0 {
		o.Retry = defaultRetry
	}
	var running sync.WaitGroup
	for _, s := range o.Sources {
		c := client.New(s.Socket)
		f := &follower{agent: s.Agent, election: o.Election, retry: o.Retry, client: c, see: see}
		running.Go(func() { f.watch(ctx) })
		if o.Poll > 0 {
			running.Go(func() { f.poll(ctx, o.Poll) })
		}
		context.AfterFunc(ctx, c.Close)
	}
	running.Wait()
}

type follower struct {
	agent, election string
	retry           time.Duration
	client          *client.Client
	see             func(Event)
}

// watch follows the agent's changes. If the agent goes away, watch starts again.
func (f *follower) watch(ctx context.Context) {
	for ctx.Err() == nil {
		seen, retry := false, f.retry
		for change, err := range f.client.Watch(ctx, f.election, 0) {
			if err != nil {
				if seen && ctx.Err() == nil {
					f.see(Lost{Agent: f.agent, Election: f.election, At: boottime.Now()})
				}
				if _, refused := errors.AsType[*client.APIError](err); refused {
					retry = max(retry, refusedRetry)
				}
				break
			}
			seen = true
			f.see(Changed{Agent: f.agent, Change: change})
		}
		_ = Sleep(ctx, retry)
	}
}

func (f *follower) poll(ctx context.Context, every time.Duration) {
	for ctx.Err() == nil {
		if answer, err := Ask(ctx, f.client, f.agent, f.election); err == nil {
			f.see(answer)
		}
		_ = Sleep(ctx, every)
	}
}

func Ask(ctx context.Context, c *client.Client, agent, election string) (Polled, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	sent := boottime.Now()
	answer, err := c.Election(ctx, election, client.ElectionOptions{})
	return Polled{Agent: agent, Sent: sent, Received: boottime.Now(), Election: answer}, err
}

// Sleep waits for d. It fails if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
