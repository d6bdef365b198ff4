package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

const (
	// answersEvery is how often the command asks a restarting agent until it answers.
	answersEvery = 20 * time.Millisecond
	// quietly is how long the command waits before it reports that it waits. Most restarts take less.
	quietly = time.Second
	// nextLimit bounds the wait for the agent's next process. The agent may first have to hand over, which takes
	// a lease and a run of the hook. The keeper then tries to start it at least every 5 s.
	nextLimit = 30 * time.Second
)

func restartAgent(i *invocation) error {
	ctx, c := i.upTo(changeTimeout), i.client()
	before, err := c.Agent(ctx)
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	began := time.Now()
	outcome, err := c.Restart(ctx)
	if _, ended := errors.AsType[*client.UnreachableError](err); ended && ctx.Err() == nil {
		// The agent answered just before, so it is already restarting for another caller. Its next process starts
		// after this command did, which is all that this command asks for.
		outcome, err = api.Outcome{Done: true}, nil
	}
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	if !outcome.Done {
		return &failure{code: exitFailed, what: "restart: " + orDash(outcome.Message), hint: "nothing was changed: the agent goes on as it is"}
	}
	now, err := i.awaitNext(ctx, c, before.BootID, nextLimit)
	if err != nil {
		return err
	}
	if outcome.Message != "" {
		outcome.Message += "; "
	}
	outcome.Message += "version " + now.Version
	outcome.Waited = time.Since(began).Milliseconds()
	return i.show(outcome, outcomeLine(outcome, "restarted"))
}

// awaitNext waits until the agent answers with another boot ID. It reports on stderr what it waits for.
func (i *invocation) awaitNext(ctx context.Context, c *client.Client, before string, limit time.Duration) (api.Agent, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answers, same, late := false, false, time.After(quietly)
	var now api.Agent
	until(ctx, answersEvery, func() bool {
		next, err := c.Agent(ctx)
		if ctx.Err() == nil {
			now, same = next, err == nil
		}
		select {
		case <-late:
			fmt.Fprintf(i.stderr, "doyen: restart: waiting until the agent's next process answers at %s, up to %s\n", printable(c.Socket()), limit)
		default:
		}
		answers = err == nil && next.BootID != before
		return answers
	})
	switch {
	case answers:
		return now, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return now, fmt.Errorf("restart: wait for the agent's next process: %w", ctx.Err())
	}
	return now, nextMissing(c.Socket(), same, limit)
}

// nextMissing is the error if the agent's next process does not answer within the limit.
func nextMissing(socket string, same bool, limit time.Duration) error {
	missing := &failure{code: exitFailed, what: "restart",
		err:  fmt.Errorf("no next process of the agent answers at %s after %s", socket, limit),
		hint: "read the agent's log (`journalctl -u doyen`), repair what it reports or put the former program file in place, and start the agent: systemctl restart doyen"}
	if same {
		missing.err = fmt.Errorf("the agent has not ended after %s: the process before still answers at %s", limit, socket)
		missing.hint = "it may still be handing over: its log and `doyen status` show more"
	}
	return missing
}

func reload(i *invocation) error {
	return ask(i, changeTimeout, "reload", func(c *client.Client, ctx context.Context) (api.Reload, error) {
		outcome, err := c.Reload(ctx)
		if err == nil && !outcome.Done {
			err = &failure{code: exitConfig, what: "nothing was changed: " + orDash(outcome.Message)}
		}
		return outcome, err
	}, reloadLines)
}

func reloadLines(outcome api.Reload) string {
	text := "reloaded: nothing has changed\n"
	if len(outcome.Applied) > 0 {
		text = "reloaded: " + strings.Join(outcome.Applied, ", ") + "\n"
	}
	if len(outcome.NeedsRestart) > 0 {
		text += "changed, and counts from the next start on: " + strings.Join(outcome.NeedsRestart, ", ") + "; `doyen restart` starts it again, or reports why it can't\n"
	}
	if outcome.Message != "" {
		text += printable(outcome.Message) + "\n"
	}
	return text
}
