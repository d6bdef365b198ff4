package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/api"
)

// meant returns the live agents that a command is about: those for which `is` returns true. On a terminal, it
// asks whether they are the right ones: anyone with the cluster key can join under any name. If the answer is
// yes, it returns their IDs too. Without a terminal, or with --id, it asks nothing.
func (i *invocation) meant(question string, is func(api.Member) bool) (found []api.Member, ids []string, err error) {
	ctx := i.question()
	all, err := i.client().Members(ctx)
	found = slices.DeleteFunc(all, func(m api.Member) bool { return m.Status != api.StatusAlive || !is(m) })
	switch {
	case !terminal(i.stdin) || i.IsSet("id"):
		return found, nil, nil // the next call to the agent reports an error
	case err != nil || len(found) == 0:
		return nil, nil, err
	}
	for _, m := range found {
		ids = append(ids, m.ID)
		fmt.Fprint(i.stderr, identity(m))
	}
	fmt.Fprintf(i.stderr, "Are these your hosts: %s [y/N] ", question)
	if !agreed(i.Context.Context, i.stdin) {
		return nil, nil, &failure{code: exitFailed, what: i.Command.Name + ": nothing was done: you did not answer y"}
	}
	return found, ids, nil
}

// chosen writes which of these agents the answer names.
func (i *invocation) chosen(meant []api.Member) (text string) {
	for _, m := range meant {
		if bytes.Contains(i.body, []byte(m.ID)) {
			text += identity(m)
		}
	}
	return text
}

func identity(m api.Member) string { return printable(m.Name+" is "+m.ID+" at "+m.GossipAddr) + "\n" }
