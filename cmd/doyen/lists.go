package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

func members(i *invocation) error {
	return ask(i, readTimeout, "list the members", (*client.Client).Members, func(list []api.Member) string { return membersTable(list, time.Now()) })
}

func membersTable(list []api.Member, now time.Time) string {
	rows := [][]string{{"NAME", "STATUS", "VOTER", "PRIORITY", "LINK", "AGE", "ADDRESS", "VERSION"}}
	for _, m := range list {
		joined := ""
		if !m.JoinedAt.IsZero() {
			joined = age(now.Sub(m.JoinedAt))
		}
		priority := "" // only a candidate has a priority
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

// linkText writes whether there is a direct connection, and the round trip of gossip.
func linkText(m api.Member) string {
	if !m.Connected {
		return "down"
	}
	return cmp.Or(roundTrip(m.RTTMS), "up")
}

// roundTrip writes a round trip, which the agent has rounded up. 0 means that none was measured.
func roundTrip(ms int64) string {
	switch {
	case ms <= 0:
		return ""
	case ms == 1:
		return "<1ms"
	}
	return fmt.Sprintf("%dms", ms)
}

func elections(i *invocation) error {
	return ask(i, readTimeout, "list the elections", (*client.Client).Elections, electionsTable)
}

func electionsTable(list []api.Election) string { return colouredElections(list, palette{}) }

// colouredElections is electionsTable with coloured states.
func colouredElections(list []api.Election, p palette) string {
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
	left := room(rows)
	for i, e := range list {
		rows[i+1][6] = some(e.Candidates, left)
	}
	return painted(rows, func(row, column int, cell string) string {
		switch {
		case row == 0 || column != 1:
			return cell
		case cell == api.StateLeading || cell == api.StateFollowing:
			return p.green(cell)
		case cell == api.StateNoQuorum:
			return p.red(cell)
		}
		return p.yellow(cell)
	})
}

// some lists as many names as fit into room, and how many are left.
func some(names []string, room int) string {
	for n := len(names); ; n-- {
		text := strings.Join(names[:n], ",")
		if n < len(names) {
			text += fmt.Sprintf(",+%d", len(names)-n)
		}
		if len(text) <= room || n <= 1 {
			return text
		}
	}
}

// lease writes what remains of a lease. Below ten seconds it writes milliseconds.
func lease(ms int64) string {
	if ms >= 10_000 {
		return age(milliseconds(ms))
	}
	return fmt.Sprintf("%dms", max(ms, 0))
}

func campaigns(i *invocation) error {
	return ask(i, readTimeout, "list the campaigns", (*client.Client).Campaigns, func(list []api.Campaign) string { return campaignsTable(list, time.Now()) })
}

func campaignsTable(list []api.Campaign, now time.Time) string {
	if len(list) == 0 {
		return "no campaigns: no program of this host is a candidate\n"
	}
	rows := [][]string{{"ELECTION", "TERM", "PRIORITY", "PID", "UID", "FOR", "ABOUT ITSELF"}}
	for _, c := range list {
		rows = append(rows, []string{c.Election, number(c.Term), strconv.Itoa(c.Priority), number(c.PID), strconv.Itoa(c.UID), age(now.Sub(c.Since)), c.Meta})
	}
	left := room(rows)
	for _, row := range rows[1:] {
		row[6] = shortened(printable(row[6]), left)
	}
	return table(rows)
}

// shortened cuts a text to fit into room, but keeps at least 20 characters.
func shortened(text string, room int) string {
	if letters := []rune(text); len(letters) > max(room, 20) {
		return string(letters[:max(room, 20)-1]) + "…"
	}
	return text
}

// number writes a number. 0 means unknown.
func number[T int | uint64](n T) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
