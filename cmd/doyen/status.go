package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/each"
)

func status(i *invocation) error {
	if i.Bool("all") {
		return ask(i, readTimeout, "ask all agents", (*client.Client).Agents, agentsPage)
	}
	return askBoth(i, "ask for the status", (*client.Client).Agent, (*client.Client).Elections, func(a api.Agent, list []api.Election) string {
		return statusPage(a, list, i.palette(), time.Now())
	})
}

func statusPage(a api.Agent, list []api.Election, p palette, now time.Time) string {
	var page strings.Builder
	row := func(label, format string, args ...any) {
		fmt.Fprintf(&page, "%-9s %s\n", label, fmt.Sprintf(format, args...))
	}
	row("agent", "%s, up %s, pid %d, version %s", printable(a.Name), age(milliseconds(a.UptimeMS)), a.PID, orDash(printable(a.Version)))
	row("cluster", "%s, algorithm %s", printable(a.Cluster), printable(a.Algorithm))
	row("quorum", "%s", quorumLine(a.Quorum, p))
	if a.Draining {
		row("draining", "%s", p.yellow("yes: it can't be elected until `doyen drain off`, even after a restart"))
	}
	fmt.Fprintf(&page, "\n%s", colouredElections(list, p))
	if len(a.Warnings) > 0 {
		page.WriteByte('\n')
	}
	for _, w := range a.Warnings {
		since := ""
		if !w.Since.IsZero() {
			since = " " + p.faint("(for "+age(now.Sub(w.Since))+")")
		}
		fmt.Fprintf(&page, "%s %s: %s%s\n", p.yellow("warning"), printable(w.Code), printable(w.Message), since)
	}
	return page.String()
}

func quorumLine(q api.Quorum, p palette) string {
	if !q.Enabled {
		return p.yellow("off") + ": answers are this agent's view only; there may be two leaders"
	}
	if q.Voters == 0 {
		return p.red("not formed yet") + ": the agents have not agreed on the voters yet, see the warnings"
	}
	counts := fmt.Sprintf("%d of %d voters reachable, %d needed", q.Reachable, q.Voters, q.Needed)
	switch q.State {
	case api.QuorumEdge:
		return p.yellow(q.State) + ": " + counts + "; losing one more voter loses the quorum"
	case api.QuorumLost:
		return p.red(q.State) + ": " + counts
	}
	return p.green(printable(q.State)) + ": " + counts
}

// agentsPage lists the agents, and then their warnings.
func agentsPage(all []api.AgentReport) string {
	rows := [][]string{{"NAME", "REACHED", "VERSION", "DRAINED", "WARNINGS", "LAG", "KEYS"}}
	var warnings strings.Builder
	for _, a := range all {
		if !a.Reached {
			rows = append(rows, []string{a.Name, "no", a.Version, yesNo(a.Draining), "", "", ""})
			continue
		}
		keys := each.Of(a.Keys, func(k api.Key) string { return k.Fingerprint })
		rows = append(rows, []string{a.Name, "yes", a.Version, yesNo(a.Draining), strconv.Itoa(len(a.Warnings)), roundTrip(a.LagMS), strings.Join(keys, ",")})
		for _, w := range a.Warnings {
			fmt.Fprintf(&warnings, "\n%s: %s: %s", printable(a.Name), printable(w.Code), printable(w.Message))
		}
	}
	page := table(rows)
	if warnings.Len() > 0 {
		page += warnings.String() + "\n"
	}
	return page
}
