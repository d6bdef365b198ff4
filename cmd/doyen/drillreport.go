package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/plan"
)

// drillReport is what `doyen drill -o json` writes.
type drillReport struct {
	Election string `json:"election"`
	How      string `json:"how"`
	Agent    string `json:"agent"` // the one that leads, and that the drill is about
	Effect   string `json:"effect"`
	Done     bool   `json:"done"` // the drill was run, and not only planned
	// At is when it was; null: it was only planned.
	At          *time.Time        `json:"at"`
	Interrupted bool              `json:"interrupted"`
	AsPlanned   bool              `json:"as_planned"`
	Why         []string          `json:"why"` // it was not
	Notes       []string          `json:"notes"`
	Elections   []drilledElection `json:"elections"`
	Agents      []drilledAgent    `json:"agents"` // how each of them saw the first election

	back bool // the drilled agent runs again, or still
}

// drilledElection is one that the drill is about, or that the same agent leads.
type drilledElection struct {
	Election  string       `json:"election"`
	Leader    string       `json:"leader"` // before
	Term      uint64       `json:"term"`   // before
	Planned   drillPlanned `json:"planned"`
	Was       *drillWas    `json:"was"` // null: not known, or only planned
	AsPlanned bool         `json:"as_planned"`
	Why       string       `json:"why,omitempty"`
}

type drillPlanned struct {
	Leaders []string `json:"leaders"` // the likeliest first
	Term    uint64   `json:"term"`    // the lowest that is foreseen
	// Stays: the leader goes on in the same term, with no election.
	Stays      bool  `json:"stays"`
	EarliestMS int64 `json:"earliest_ms"`
	LatestMS   int64 `json:"latest_ms"`
	// AllowedMS is what still counts as planned: half a lease more, for disks, links and hooks
	// that are slower than the plan's.
	AllowedMS int64 `json:"allowed_ms"`
	// Otherwise is who leads if it does not go on; empty: that is not to happen.
	Otherwise []string `json:"otherwise"`
}

type drillWas struct {
	Leader string `json:"leader"`
	Term   uint64 `json:"term"`
	// TookMS is the time until it led, from the drill on, or as another agent saw it, since it had
	// last heard the former leader.
	TookMS int64 `json:"took_ms"`
	// WithoutMS is for how long no leader was known: From and Until, if it was longer than 0.
	WithoutMS int64      `json:"without_leader_ms"`
	From      *time.Time `json:"from"`
	Until     *time.Time `json:"until"`
	SeenBy    string     `json:"seen_by"`
}

type drilledAgent struct {
	Name      string    `json:"name"`
	Reached   bool      `json:"reached"`   // after the drill
	Restarted bool      `json:"restarted"` // another process of it runs than before
	Was       *drillWas `json:"was"`       // null: it saw no change
}

// judge compares what was with what was planned.
func (e *drilledElection) judge() {
	p, was := e.Planned, e.Was
	switch {
	case was == nil:
		e.Why = "nobody was seen to lead " + e.Election + " afterwards"
	case !slices.Contains(p.Leaders, was.Leader):
		e.Why = fmt.Sprintf("%s leads %s, not %s", was.Leader, e.Election, strings.Join(p.Leaders, " or "))
	case p.Stays && was.Term != e.Term:
		e.Why = fmt.Sprintf("%s leads %s in term %d: it was to go on in term %d", was.Leader, e.Election, was.Term, e.Term)
	case was.TookMS > p.AllowedMS:
		e.Why = fmt.Sprintf("%s was without its leader for %s: %s was planned, and %s counts as planned", e.Election, span(was.TookMS), planSpan(p), milliseconds(p.AllowedMS))
	}
	e.AsPlanned = e.Why == ""
}

func (w *drillWas) without(c api.Transition) {
	if w.WithoutMS = c.VacantMS; c.VacantMS > 0 {
		until := c.Time
		from := until.Add(-milliseconds(c.VacantMS))
		w.From, w.Until = &from, &until
	}
}

// foreseen returns what is to happen to an election, by the plan.
func foreseen(f plan.Forecast, lease time.Duration) drillPlanned {
	t := f.Then[0]
	p := drillPlanned{Leaders: t.Leaders, Term: t.Term, Stays: t.Stays, EarliestMS: t.EarliestMS, LatestMS: t.LatestMS, Otherwise: []string{}}
	if p.Stays {
		p.Term = f.Term
	}
	p.AllowedMS = p.LatestMS + (lease / 2).Milliseconds()
	return p
}

// restarts has the plan of a kill take the agent's next process into account, which leads on, by
// its record, if it starts within the lease.
func (e *drilledElection) restarts(record bool, lease time.Duration) {
	p := &e.Planned
	if !record {
		p.Leaders = append(slices.Clone(p.Leaders), e.Leader)
		return
	}
	p.Otherwise, p.Leaders, p.Stays, p.Term = p.Leaders, []string{e.Leader}, true, e.Term
	p.EarliestMS, p.LatestMS, p.AllowedMS = 0, 0, (lease / 2).Milliseconds()
}

// judge compares with the plan, and says what is left to do.
func (r *drillReport) judge(limit time.Duration) {
	if r.Interrupted {
		r.Why = append(r.Why, "interrupted: "+r.Effect+", and the outcome was not waited for")
	}
	for i := range r.Elections {
		e := &r.Elections[i]
		if e.judge(); e.Why != "" && !(r.Interrupted && e.Was == nil) {
			r.Why = append(r.Why, e.Why)
		}
	}
	if !r.back && r.How != api.DrillTransfer {
		r.Why = append(r.Why, fmt.Sprintf("%s has not come back within %s; start the agent on the host %s: systemctl start doyen", r.Agent, limit, r.Agent))
	}
	r.AsPlanned = len(r.Why) == 0
}

func planSpan(p drillPlanned) string {
	if p.Stays {
		return "no time"
	}
	return span(p.EarliestMS) + " to " + span(p.LatestMS)
}

// planPage is the drill's plan as text.
func (r drillReport) planPage(quorum api.Quorum) string {
	var page strings.Builder
	fmt.Fprintf(&page, "drill of %s: %s\n", printable(r.Election), printable(r.Effect))
	if quorum.Enabled {
		fmt.Fprintf(&page, "quorum: %d of %d voters can be reached, %d are needed\n", quorum.Reachable, quorum.Voters, quorum.Needed)
	}
	rows := [][]string{{"ELECTION", "NOW", "TERM", "THEN", "TERM", "WITHIN", "COUNTS UP TO", "OTHERWISE"}}
	for _, e := range r.Elections {
		p := e.Planned
		within := planSpan(p)
		if p.Stays {
			within = "stays"
		}
		rows = append(rows, []string{e.Election, e.Leader, fmt.Sprint(e.Term), strings.Join(p.Leaders, " or "), fmt.Sprint(p.Term), within, milliseconds(p.AllowedMS).String(), strings.Join(p.Otherwise, " or ")})
	}
	page.WriteString("\n" + table(rows))
	for _, n := range r.Notes {
		page.WriteString(printable(n) + "\n")
	}
	return page.String()
}

// page is the outcome as text.
func (r drillReport) page() string {
	rows := [][]string{{"ELECTION", "LEADER", "TERM", "TOOK", "PLANNED", "NONE", "AS PLANNED"}}
	for _, e := range r.Elections {
		row := []string{e.Election, "", "", "", planSpan(e.Planned), "", yesNo(e.AsPlanned)}
		if e.Was != nil {
			row[1], row[2], row[3], row[5] = e.Was.Leader, fmt.Sprint(e.Was.Term), span(e.Was.TookMS), noneText(e.Was)
		}
		rows = append(rows, row)
	}
	agents := [][]string{{"AGENT", "LEADER", "TERM", "TOOK", "NONE", "STATE"}}
	for _, a := range r.Agents {
		row := []string{a.Name, "", "", "", "", "reached"}
		switch {
		case !a.Reached:
			row[5] = "not reached"
		case a.Restarted:
			row[5] = "restarted"
		}
		if a.Was != nil {
			row[1], row[2], row[3], row[4] = a.Was.Leader, fmt.Sprint(a.Was.Term), span(a.Was.TookMS), noneText(a.Was)
		}
		agents = append(agents, row)
	}
	text := "\n" + table(rows) + "\n" + table(agents) + "\n"
	for _, n := range r.Notes {
		text += printable(n) + "\n"
	}
	for _, why := range r.Why {
		text += "not as planned: " + printable(why) + "\n"
	}
	if r.AsPlanned {
		text += "as planned\n"
	}
	return text
}

// noneText is for how long no leader was known, and since when.
func noneText(w *drillWas) string {
	if w.From == nil {
		return ""
	}
	return gapText(w.WithoutMS) + " from " + w.From.Local().Format(timeOfDay)
}
