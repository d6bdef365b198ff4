package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
)

func voters(i *invocation) error {
	if i.NArg() == 0 || i.Args().Get(0) == "list" && i.Args().Get(1) == "" {
		return ask(i, readTimeout, "list the voters", (*client.Client).Voters, votersTable)
	}
	return changeVoters(i, i.Args().Get(0), i.Args().Get(1))
}

func changeVoters(i *invocation, verb, name string) error {
	id := i.String("id")
	request := map[string]api.VotersRequest{"add": {Add: name, ID: id}, "remove": {Remove: name}, "replace": {Replace: name, ID: id}, "cancel": {Cancel: true}, "restore": {Restore: true}}[verb]
	bare, what := request.Cancel || request.Restore, verb+" voter "+name
	switch {
	case name != "" && (bare || verb == "list"):
		return usage("write: doyen voters "+verb, "voters %s takes no arguments, got %q", verb, name)
	case name == "" && !bare:
		return usage("write: doyen voters "+verb+" NAME; `doyen members` lists the names", "voters %s: NAME is missing", verb)
	case name != "" && !election.ValidName(name):
		return usage(nameRule, "voters %s: %q is not a valid agent name", verb, name)
	case id != "" && request.ID == "":
		return usage("--id is for add and replace", "voters %s: a flag that is not for it", verb)
	case request.Cancel:
		what = "cancel the change of the voters"
	case request.Restore:
		what = "restore the former voters"
	}
	gains := func(m api.Member) bool { return request.Add+request.Replace == m.Name && !m.Voter }
	meant, ids, err := i.meant("make it a voter?", gains)
	if err != nil {
		return err
	}
	request.ID = strings.Join(append(ids, request.ID), "")
	return ask(i, changeTimeout, what, func(c *client.Client, ctx context.Context) (api.Voters, error) {
		roster, err := c.ChangeVoters(ctx, request)
		if bare {
			err = hinted(err, api.CodeNotFound, "`doyen voters` shows the voters, and whether a change is under way")
		}
		return roster, err
	}, func(roster api.Voters) string { return votersTable(roster) + i.chosen(meant) })
}

// votersTable writes the voters. During a change, it marks which ones join and leave.
func votersTable(roster api.Voters) string {
	if len(roster.Voters) == 0 {
		return "no voters: no roster is formed, or this cluster runs without quorum\n"
	}
	has := func(voters []api.Voter, id string) bool {
		return slices.ContainsFunc(voters, func(v api.Voter) bool { return v.ID == id })
	}
	rows := [][]string{{"NAME", "LINK", "CHANGE", "ID"}}
	for _, v := range roster.Voters {
		change := ""
		if len(roster.Next) > 0 && !has(roster.Next, v.ID) {
			change = "leaves"
		}
		rows = append(rows, []string{v.Name, upDown(v.Connected), change, v.ID})
	}
	for _, v := range roster.Next {
		if !has(roster.Voters, v.ID) {
			rows = append(rows, []string{v.Name, upDown(v.Connected), "joins", v.ID})
		}
	}
	slices.SortFunc(rows[1:], func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return table(rows) + votersChange(roster.Change)
}

// votersChange writes what a change in progress waits for.
func votersChange(c *api.VotersChange) string {
	if c == nil {
		return ""
	}
	line := "a change is under way, and no agent is known to drive it"
	if c.Driver != "" {
		line = "a change is under way, driven by " + c.Driver
	}
	if c.GoingBack {
		line += ", back to the former voters"
	}
	switch {
	case len(c.WaitsFor) > 0:
		line += "; waits for " + strings.Join(c.WaitsFor, ", ")
	case c.PromisesMS > 0:
		line += fmt.Sprintf("; promises given under the former voters last for another %s", milliseconds(c.PromisesMS))
	}
	return line + "\n"
}
