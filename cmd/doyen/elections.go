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
	rows := [][]string{{"ELECTION", "STATE", "LEADER", "TERM", "LEASE", "HEARD", "CANDIDATES"}}
	for _, e := range list {
		row := []string{e.Election, e.State, "", strconv.FormatUint(e.Term, 10), "", "", ""}
		if e.Leader != nil {
			row[2], row[4], row[5] = e.Leader.Name, "none", age(milliseconds(e.ViewAgeMS))
			if e.Authority != api.AuthorityView {
				row[4] = lease(e.LeaseRemainingMS)
			}
		}
		rows = append(rows, row)
	}
	room := lineWidth - width(rows)
	for i, e := range list {
		rows[i+1][6] = some(e.Candidates, room)
	}
	return table(rows)
}

// some lists as many names as fit, and how many more there are.
func some(names []string, room int) string {
	for n := len(names); n > 1; n-- {
		text := strings.Join(names[:n], ",")
		if n < len(names) {
			text += fmt.Sprintf(",+%d", len(names)-n)
		}
		if len(text) <= room {
			return text
		}
	}
	if len(names) > 1 {
		return fmt.Sprintf("%s,+%d", names[0], len(names)-1)
	}
	return strings.Join(names, ",")
}

// lease writes what remains of a lease: below ten seconds in milliseconds.
func lease(ms int64) string {
	if ms >= 10_000 {
		return age(milliseconds(ms))
	}
	return fmt.Sprintf("%dms", max(ms, 0))
}
