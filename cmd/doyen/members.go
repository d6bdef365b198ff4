package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/api"
)

func membersCommand() command {
	return command{
		name:  "members",
		usage: "list the agents known by gossip",
		run:   members,
	}
}

func members(i *invocation) error {
	ctx, cancel := i.question()
	defer cancel()
	list, err := i.client().Members(ctx)
	if err != nil {
		return fmt.Errorf("list the members: %w", err)
	}
	return i.answer(membersTable(list, time.Now()))
}

func membersTable(list []api.Member, now time.Time) string {
	rows := [][]string{{"NAME", "STATUS", "VOTER", "PRIORITY", "LINK", "AGE", "ADDRESS", "VERSION"}}
	for _, m := range list {
		joined := ""
		if !m.JoinedAt.IsZero() {
			joined = age(now.Sub(m.JoinedAt))
		}
		priority := "" // only a candidate has one
		switch {
		case m.Drained:
			priority = "DRAINED"
		case m.Candidate:
			priority = strconv.Itoa(m.Priority)
		}
		rows = append(rows, []string{m.Name, m.Status, yesNo(m.Voter), priority, linkText(m), joined, m.GossipAddr, m.Version})
	}
	text := table(rows)
	for _, m := range list {
		if m.Reason != "" {
			text += fmt.Sprintf("%s is not a candidate in default: %s\n", printable(m.Name), printable(m.Reason))
		}
	}
	return text
}

// linkText tells whether there is a direct connection, and the round trip of gossip.
func linkText(m api.Member) string {
	if !m.Connected {
		return "down"
	}
	return cmp.Or(roundTrip(m.RTTMS), "up")
}

// roundTrip writes a round trip, which is rounded up; 0 means that none was measured.
func roundTrip(ms int64) string {
	switch {
	case ms <= 0:
		return ""
	case ms == 1:
		return "<1ms"
	}
	return fmt.Sprintf("%dms", ms)
}
