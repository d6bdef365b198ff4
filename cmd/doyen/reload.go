package main

import (
	"context"
	"strings"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

func reloadCommand() command {
	return command{
		name:  "reload",
		usage: "make this agent read its configuration again, and apply what can change while it runs",
		description: "Names what was applied, and what needs a restart (`doyen restart`, which costs no lead, or reports why it\n" +
			"can't). If anything is wrong, nothing is changed. SIGHUP does the same, and the agent's log has the outcome.\n\n" +
			"Exit codes: 0 done, 3 the agent can't be reached, 78 the configuration is wrong.",
		run: reload,
	}
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
