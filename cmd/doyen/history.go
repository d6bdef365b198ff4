package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/api"
)

// timeOfDay is how a table writes a time: local, to the millisecond.
const timeOfDay = "2006-01-02 15:04:05.000"

func historyCommand() command {
	return command{
		name: "history", args: "[ELECTION]", max: 1,
		usage: "show who led and when, why that changed, and how long there was no leader",
		description: "Shows what this agent has seen since its start, in all elections or in one; the newest is last.\n" +
			"GAP is how long no leader was known before the change. Exit codes: 0 done, 3 the agent can't be reached.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: "limit", Usage: "show only the newest `N` changes, 1 to 1024", DefaultText: "100"},
			&cli.BoolFlag{Name: "evidence", Usage: "also show what this agent knew at each change", DisableDefaultText: true},
		},
		run: history,
	}
}

func history(i *invocation) error {
	name := ""
	if i.NArg() > 0 {
		var err error
		if name, err = i.election(); err != nil {
			return err
		}
	}
	limit := 0
	if i.IsSet("limit") {
		n, err := strconv.Atoi(i.String("limit"))
		if err != nil || n < 1 || n > 1024 {
			return usage("write --limit N, with N from 1 to 1024", "history: --limit %q is not a number from 1 to 1024", i.String("limit"))
		}
		limit = n
	}
	ctx, cancel := i.question()
	defer cancel()
	list, err := i.client().History(ctx, name, limit)
	if err != nil {
		return fmt.Errorf("ask for the history: %w", err)
	}
	return i.answer(historyTable(list, name, i.Bool("evidence")))
}

func historyTable(list []api.Transition, name string, evidence bool) string {
	if len(list) == 0 && name != "" {
		return "no changes of " + name + " since this agent started\n"
	}
	if len(list) == 0 {
		return "no changes: nobody has led since this agent started\n"
	}
	rows := [][]string{{"TIME", "ELECTION", "LEADER", "TERM", "GAP", "WHY"}}
	if evidence {
		rows[0] = append(rows[0], "EVIDENCE")
	}
	for _, t := range list {
		who, gap := "", ""
		if t.Leader != nil {
			who = t.Leader.Name
		}
		if t.GapMS > 0 {
			gap = gapText(milliseconds(t.GapMS))
		}
		row := []string{t.Time.Local().Format(timeOfDay), t.Election, who, strconv.FormatUint(t.Term, 10), gap, t.Reason}
		if evidence {
			row = append(row, t.Evidence)
		}
		rows = append(rows, row)
	}
	return table(rows)
}

// gapText writes how long nobody led: to the millisecond if it is below a minute.
func gapText(d time.Duration) string {
	if d < time.Minute {
		return d.String()
	}
	return age(d)
}
