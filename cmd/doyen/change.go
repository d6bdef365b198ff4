package main

import (
	"context"
	"fmt"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
)

func resign(i *invocation) error {
	name := i.election()
	return i.order("resign "+name, "resigned from "+name, func(c *client.Client, ctx context.Context) (api.Outcome, error) {
		return c.Resign(ctx, name)
	})
}

func transfer(i *invocation) error {
	name, to := i.election(), i.String("to")
	if to == "" {
		hint := "write: doyen transfer " + name + " --to NAME, where NAME is the agent that should lead; `doyen elections` lists the candidates"
		if i.NArg() > 0 {
			hint += ". If " + name + " is that agent, and not an election: doyen transfer --to " + name
		}
		return usage(hint, "transfer: --to is missing")
	}
	if !election.ValidName(to) {
		return usage(nameRule, "transfer: --to: %q is not a valid agent name", to)
	}
	what := fmt.Sprintf("transfer %s to %s", name, to)
	return i.order(what, "transfer of "+name+" done", func(c *client.Client, ctx context.Context) (api.Outcome, error) {
		return c.Transfer(ctx, name, to)
	})
}

func drain(i *invocation) error {
	on, name := i.Args().Get(0) == "on", i.Args().Get(1)
	if i.IsSet("jobs") && (!on || name != "") {
		return usage("run it on the host that is drained: doyen drain on --jobs 10m", "drain: --jobs is for this host, and for on")
	}
	if name != "" && !election.ValidName(name) {
		return usage(nameRule, "drain: %q is not a valid agent name", name)
	}
	who, off := "this agent", "doyen drain off"
	if name != "" {
		who, off = name, "doyen drain off "+name
	}
	done := "drained: " + who + " can't be elected until `" + off + "`, even after a restart"
	if !on {
		done = "drain ended: " + who + " can be elected again"
	}
	if err := i.awaitJobs(i.duration("jobs")); err != nil {
		return fmt.Errorf("wait for the jobs: %w", err)
	}
	return i.order("drain "+i.Args().Get(0), done, func(c *client.Client, ctx context.Context) (api.Outcome, error) {
		return c.DrainAgent(ctx, name, on, i.Bool("force"))
	})
}

func leave(i *invocation) error {
	return i.order("leave", "left the cluster; the agent stops", (*client.Client).Leave)
}

// order asks for a change and prints the outcome. If the outcome is not done, the agent has refused.
func (i *invocation) order(what, done string, call func(*client.Client, context.Context) (api.Outcome, error)) error {
	return ask(i, changeTimeout, what, func(c *client.Client, ctx context.Context) (api.Outcome, error) {
		o, err := call(c, ctx)
		if err == nil && !o.Done {
			err = &failure{code: exitFailed, what: orDash(o.Message), hint: "`doyen status` shows the current state"}
		}
		return o, err
	}, func(o api.Outcome) string { return outcomeLine(o, done) })
}

// outcomeLine writes what was done, which agent leads now, the agent's message, and how long it took.
func outcomeLine(o api.Outcome, done string) string {
	line := done
	if o.Leader != nil {
		line += fmt.Sprintf("; %s leads, term %d", printable(o.Leader.Name), o.Term)
	}
	if o.Message != "" {
		line += "; " + printable(o.Message)
	}
	return line + fmt.Sprintf(" (waited %s)\n", age(milliseconds(o.Waited)))
}
