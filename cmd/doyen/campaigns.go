package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/api"
)

func campaignsCommand() command {
	return command{
		name:  "campaigns",
		usage: "list the programs of this host that are candidates",
		description: "Of `doyen run` and of programs that use the socket API. TERM is that of a program that leads.\n" +
			"Exit codes: 0 done, 3 the agent can't be reached.",
		run: campaigns,
	}
}

func campaigns(i *invocation) error {
	ctx, cancel := i.question()
	defer cancel()
	list, err := i.client().Campaigns(ctx)
	if err != nil {
		return fmt.Errorf("list the campaigns: %w", err)
	}
	return i.answer(campaignsTable(list, time.Now()))
}

func campaignsTable(list []api.Campaign, now time.Time) string {
	if len(list) == 0 {
		return "no campaigns: no program of this host is a candidate\n"
	}
	rows := [][]string{{"ELECTION", "TERM", "PRIORITY", "PID", "UID", "FOR", "ABOUT ITSELF"}}
	for _, c := range list {
		term := ""
		if c.Term != 0 {
			term = strconv.FormatUint(c.Term, 10)
		}
		rows = append(rows, []string{c.Election, term, strconv.Itoa(c.Priority), number(c.PID), strconv.Itoa(c.UID), age(now.Sub(c.Since)), c.Meta})
	}
	room := lineWidth - width(rows)
	for _, row := range rows[1:] {
		row[6] = shortened(printable(row[6]), room)
	}
	return table(rows)
}

// shortened is the beginning of a text, at least 20 characters of it.
func shortened(text string, room int) string {
	if letters := []rune(text); len(letters) > max(room, 20) {
		return string(letters[:max(room, 20)-1]) + "…"
	}
	return text
}

// number writes a number of which 0 means that it is not known.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
