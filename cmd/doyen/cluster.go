package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
)

func agreedSettings(i *invocation) error {
	if i.NArg() == 0 {
		return ask(i, readTimeout, "show the settings", (*client.Client).Settings, settingsTable)
	}
	request, err := settingsRequest(i.Args().Tail())
	if err != nil {
		return err
	}
	return ask(i, changeTimeout, "change the settings", func(c *client.Client, ctx context.Context) (api.Settings, error) {
		return c.ChangeSettings(ctx, request)
	}, settingsTable)
}

func settingsRequest(pairs []string) (r api.SettingsRequest, err error) {
	const hint = "write: doyen settings set lease=2s, or algorithm=ring"
	if len(pairs) == 0 {
		return r, usage(hint, "settings set: KEY=VALUE is missing")
	}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		switch key {
		case "lease":
			lease, err := time.ParseDuration(value)
			if err != nil || lease < time.Millisecond || lease > election.MaxLease || lease%time.Millisecond != 0 {
				return r, usage(hint, "settings set: lease %q is not a duration of whole milliseconds up to %s", value, election.MaxLease)
			}
			r.LeaseMS = lease.Milliseconds()
		case "algorithm":
			if value != "bully" && value != "ring" {
				return r, usage(hint, "settings set: algorithm %q is neither bully nor ring", value)
			}
			r.Algorithm = value
		default:
			return r, usage(hint, "settings set: %q is neither lease nor algorithm", key)
		}
	}
	return r, nil
}

func allow(i *invocation) error {
	name := i.Args().Get(0)
	if !election.ValidName(name) {
		return usage("write: doyen allow ELECTION --agents a,b", "allow: ELECTION is missing, or %q is not a valid name", name)
	}
	agents, err := i.names(i.StringSlice("agents"), "name one at least, as --agents a,b; without the flag every agent may")
	if err != nil {
		return err
	}
	meant, ids, err := i.meant("allow them to lead "+name+"?", func(m api.Member) bool {
		return slices.Contains(agents, m.Name) || slices.Contains(i.StringSlice("id"), m.ID)
	})
	if err != nil {
		return err
	}
	if ids != nil { // the confirmed IDs replace the names
		agents = slices.DeleteFunc(agents, func(name string) bool {
			return slices.ContainsFunc(meant, func(m api.Member) bool { return m.Name == name })
		})
	}
	request := api.AllowRequest{Agents: slices.Concat(agents, ids, i.StringSlice("id")), MaxPriority: i.integer("max-priority")}
	return ask(i, changeTimeout, "change who may lead "+name, func(c *client.Client, ctx context.Context) (api.Settings, error) {
		return c.Allow(ctx, name, request)
	}, func(s api.Settings) string { return settingsTable(s) + i.chosen(meant) })
}

// settingsTable writes the settings on which all agents agree.
func settingsTable(s api.Settings) string {
	from := "this agent's configuration"
	if s.Agreed {
		from = "the roster"
	}
	text := table([][]string{{"SETTING", "VALUE", "FROM"}, {"algorithm", s.Algorithm, from}, {"lease", milliseconds(s.LeaseMS).String(), from}})
	if len(s.Rights) == 0 {
		return text + "any agent may lead any election\n"
	}
	return text + "\n" + listed([]string{"ELECTION", "AGENTS", "MAX PRIORITY"}, s.Rights, func(r api.Right) []string {
		return []string{r.Election, cmp.Or(strings.Join(r.Agents, ","), "any"), cmp.Or(number(r.MaxPriority), "any")}
	})
}
