package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/doyen-election/doyen/api"
)

func electionsCommand() command {
	return command{
		name:  "elections",
		usage: "list the elections: leader, term and lease",
		run:   elections,
	}
}

func elections(i *invocation) error {
	ctx, cancel := i.question()
	defer cancel()
	list, err := i.client().Elections(ctx)
	if err != nil {
		return fmt.Errorf("list the elections: %w", err)
	}
	return i.answer(electionsTable(list))
}

func electionsTable(list []api.Election) string {
	if len(list) == 0 {
		return "no elections: there are no candidates yet\n"
	}
	rows := [][]string{{"ELECTION", "STATE", "LEADER", "TERM", "LEASE", "AUTHORITY", "HEARD", "CANDIDATES"}}
	for _, e := range list {
		row := []string{e.Election, e.State, "", strconv.FormatUint(e.Term, 10), "", "", "", strings.Join(e.Candidates, ",")}
		if e.Leader != nil {
			row[2], row[5] = e.Leader.Name, e.Authority
			row[6] = age(milliseconds(e.ViewAgeMS))
			if e.Authority != api.AuthorityView {
				row[4] = lease(e.LeaseRemainingMS)
			}
		}
		rows = append(rows, row)
	}
	return table(rows)
}

// lease writes what remains of a lease: below ten seconds in milliseconds.
func lease(ms int64) string {
	if ms >= 10_000 {
		return age(milliseconds(ms))
	}
	return fmt.Sprintf("%dms", max(ms, 0))
}
