package main

import (
	"context"
	"strings"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

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
