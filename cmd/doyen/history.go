package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// timeOfDay is the format of times in a table: local, to the millisecond. If not all of them are of today, the
// date precedes each. Only the JSON has the year.
const timeOfDay = "15:04:05.000"

const mostChanges = 1024 // how many changes an agent lists in one answer

func history(i *invocation) error {
	name := i.Args().First()
	if i.Bool("report") {
		return reportHistory(i, name)
	}
	return ask(i, readTimeout, "ask for the history", func(c *client.Client, ctx context.Context) ([]api.Transition, error) {
		return c.History(ctx, name, i.integer("limit"))
	}, func(list []api.Transition) string {
		return historyTable(list, name, i.Bool("evidence"), time.Now())
	})
}

// reportHistory asks for each election separately: one with many changes would hide the others.
func reportHistory(i *invocation, name string) error {
	ctx := i.question()
	c, elections := i.client(), []api.Election{{Election: name}}
	if name == "" {
		var err error
		if elections, err = c.Elections(ctx); err != nil {
			return fmt.Errorf("ask for the elections: %w", err)
		}
	}
	all := []availability{}
	for _, e := range elections {
		list, err := c.History(ctx, e.Election, mostChanges)
		if err != nil {
			return fmt.Errorf("ask for the history of %s: %w", e.Election, err)
		}
		all = append(all, availabilityOf(e.Election, list, time.Now()))
	}
	return i.show(map[string][]availability{"report": all}, availabilityTable(all))
}

func historyTable(list []api.Transition, name string, evidence bool, now time.Time) string {
	if len(list) == 0 && name != "" {
		return "no changes of " + name + " are known\n"
	}
	if len(list) == 0 {
		return "no changes: nobody has led as far as this agent knows\n"
	}
	layout := timeOfDay
	if list[0].Time.Local().Format(time.DateOnly) != now.Local().Format(time.DateOnly) { // the oldest time is not of today
		layout = "01-02 " + timeOfDay
	}
	rows := [][]string{{"TIME", "ELECTION", "LEADER", "TERM", "GAP", "NONE", "WHY"}}
	for _, t := range list {
		who, term := "", strconv.FormatUint(t.Term, 10)
		if t.Leader != nil {
			who = t.Leader.Name
		}
		if t.Term == 0 && (t.Type == api.ChangeCommand || t.Election == "") {
			term = ""
		}
		rows = append(rows, []string{t.Time.Local().Format(layout), t.Election, who, term, gapText(t.GapMS), gapText(t.VacantMS), t.Reason})
	}
	if !evidence {
		return table(rows)
	}
	lines := strings.SplitAfter(table(rows), "\n")
	for i, t := range list {
		if t.Evidence != "" {
			lines[i+1] += "  " + printable(t.Evidence) + "\n"
		}
	}
	return strings.Join(lines, "")
}

// gapText writes a time without a leader; empty: it was 0.
func gapText(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return span(ms)
}
