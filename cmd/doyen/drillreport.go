package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/plan"
)

// drillReport is what `doyen drill -o json` writes.
type drillReport struct {
	Election  string            `json:"election"`
	How       string            `json:"how"`
	Agent     string            `json:"agent"` // the agent that leads before the drill, and then hands over, stops or is killed
	Effect    string            `json:"effect"`
	Done      bool              `json:"done"` // the drill was run; if false, it was only planned
	At        *time.Time        `json:"at"`   // null: the drill was only planned
	AsPlanned bool              `json:"as_planned"`
	Why       []string          `json:"why"` // why the outcome differs from the plan
	Notes     []string          `json:"notes"`
	Elections []drilledElection `json:"elections"`
	Agents    []drilledAgent    `json:"agents"` // how each agent saw the first election
	// Interrupted: the command ended before the outcome was known.
	Interrupted bool `json:"interrupted"`
}

type drilledAgent struct {
	Name      string    `json:"name"`
	Reached   bool      `json:"reached"`   // the agent answered after the drill
	Restarted bool      `json:"restarted"` // the agent runs as a new process
	Was       *drillWas `json:"was"`       // null: the agent saw no change
}

// drilledElection is the drill's election, or another one that the same agent leads.
type drilledElection struct {
	Election  string       `json:"election"`
	Leader    string       `json:"leader"` // before the drill
	Term      uint64       `json:"term"`   // before the drill
	Planned   drillPlanned `json:"planned"`
	Was       *drillWas    `json:"was"` // null: unknown, or the drill was only planned
	AsPlanned bool         `json:"as_planned"`
	Why       string       `json:"why,omitempty"`
}

type drillWas struct {
	Leader string `json:"leader"`
	Term   uint64 `json:"term"`
	// TookMS is the time from the former leader's last heartbeat until the new leader led.
	TookMS int64 `json:"took_ms"`
	// WithoutMS is how long no leader was known. If it is above 0, From and Until are that time.
	WithoutMS int64      `json:"without_leader_ms"`
	From      *time.Time `json:"from"`
	Until     *time.Time `json:"until"`
	SeenBy    string     `json:"seen_by"`
}

type drillPlanned struct {
	plan.Reign
	// AllowedMS is the longest time that counts as planned. It is half a lease longer than the plan: disks,
	// links and hooks may be slower than the plan assumes.
	AllowedMS int64 `json:"allowed_ms"`
	// Otherwise are the agents that may lead if the killed agent does not lead on.
	Otherwise []string `json:"otherwise"`
}

// foreseen returns the expected outcome of an election. Package plan does not know that a killed agent starts
// again and leads on by its record, so foreseen adds that.
func (d *drillRun) foreseen(f plan.Forecast) drilledElection {
	e := drilledElection{Election: f.Election, Leader: f.Leader, Term: f.Term, Planned: drillPlanned{Reign: f.Then[0], Otherwise: []string{}}}
	p := &e.Planned
	switch {
	case d.report.How == api.DrillKill && d.leader.Record:
		p.Otherwise = p.Leaders
		p.Reign = plan.Reign{Leaders: []string{f.Leader}, Stays: true, Certain: true}
	case d.report.How == api.DrillKill:
		p.Leaders = append(slices.Clone(p.Leaders), f.Leader)
	}
	if p.Stays {
		p.Term = f.Term
	}
	p.AllowedMS = p.LatestMS + d.state.agent.LeaseMS/2
	return e
}

// await waits until the outcome is known or the time limit has passed.
func (d *drillRun) await() {
	ctx := d.upTo(d.duration("timeout"))
	until(ctx, lookEvery, d.look)
	if ctx.Err() != nil {
		d.look()
	}
}

// look asks the agents what they saw, and reports whether the outcome is known.
func (d *drillRun) look() bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.Context.Context), readTimeout)
	defer cancel()
	seen, err := d.client.Drills(ctx, d.report.Election)
	if err != nil {
		return false // perhaps this host's agent is down
	}
	elections, err := d.client.Elections(ctx)
	if err != nil {
		return false
	}
	r := &d.report
	r.Agents = r.Agents[:0]
	for _, v := range seen {
		before := viewOf(d.before, v.ID)
		r.Agents = append(r.Agents, drilledAgent{Name: v.Name, Reached: v.Reached, Restarted: v.Reached && before.Reached && v.BootID != before.BootID, Was: d.saw(v, r.Elections[0])})
	}
	d.back = r.How == api.DrillTransfer || slices.ContainsFunc(r.Agents, func(a drilledAgent) bool { return a.Name == r.Agent && a.Restarted })
	known := d.back
	for i := range r.Elections {
		e := &r.Elections[i]
		e.Was = d.measured(*e, seen, elections)
		known = known && e.Was != nil
	}
	return known
}

// measured returns what happened to an election, as seen by an agent that was never down. It returns nil while
// nothing is known.
func (d *drillRun) measured(e drilledElection, seen []api.DrillView, now []api.Election) *drillWas {
	witnesses := slices.DeleteFunc(slices.Clone(seen), func(v api.DrillView) bool {
		return !v.Reached || v.ID == d.leader.ID && d.report.How != api.DrillTransfer
	})
	for _, v := range witnesses {
		if was := d.saw(v, e); was != nil {
			return was
		}
	}
	goesOn := d.back && d.report.How == api.DrillKill && slices.ContainsFunc(now, func(n api.Election) bool {
		return n.Election == e.Election && n.Leader != nil && n.Leader.ID == d.leader.ID && n.Term == e.Term
	})
	if !goesOn || len(witnesses) == 0 {
		return nil
	}
	return &drillWas{Leader: e.Leader, Term: e.Term, SeenBy: witnesses[0].Name}
}

// saw returns the first leader of the election that v's agent saw after the drill began: in a higher term or,
// after a kill, again in the same term. The result is nil if it saw none.
func (d *drillRun) saw(v api.DrillView, e drilledElection) *drillWas {
	before := viewOf(d.before, v.ID).Changes
	for _, c := range v.Changes {
		known := slices.ContainsFunc(before, func(b api.Transition) bool { return b.BoottimeNS == c.BoottimeNS && b.Term == c.Term })
		paused := d.report.How == api.DrillKill && c.Term == e.Term && c.VacantMS > 0
		if known || c.Election != e.Election || c.Type != api.ChangeLeader || c.Leader == nil || c.Term <= e.Term && !paused {
			continue
		}
		was := &drillWas{Leader: c.Leader.Name, Term: c.Term, TookMS: max(c.VacantMS, c.GapMS), WithoutMS: c.VacantMS, SeenBy: v.Name}
		if c.VacantMS > 0 {
			from := c.Time.Add(-milliseconds(c.VacantMS))
			was.From, was.Until = &from, &c.Time
		}
		return was
	}
	return nil
}

// judge compares the outcome with the plan.
func (d *drillRun) judge() {
	r := &d.report
	if r.Interrupted = d.Context.Err() != nil; r.Interrupted {
		r.Why = append(r.Why, "interrupted: "+r.Effect+", and the outcome was not waited for")
	}
	for i := range r.Elections {
		e := &r.Elections[i]
		e.Why = e.unplanned()
		e.AsPlanned = e.Why == ""
		if !e.AsPlanned && !(r.Interrupted && e.Was == nil) {
			r.Why = append(r.Why, e.Why)
		}
	}
	switch {
	case r.How == api.DrillTransfer:
	case d.back:
		r.Notes = append(r.Notes, r.Agent+" has restarted")
	default:
		r.Why = append(r.Why, fmt.Sprintf("%s has not come back within %s; start the agent on the host %s: systemctl start doyen", r.Agent, d.duration("timeout"), r.Agent))
	}
	r.AsPlanned = len(r.Why) == 0
}

// unplanned returns how an election's outcome differs from the plan; empty: it does not.
func (e drilledElection) unplanned() string {
	p, was := e.Planned, e.Was
	switch {
	case was == nil:
		return "nobody was seen to lead " + e.Election + " afterwards"
	case !slices.Contains(p.Leaders, was.Leader):
		return fmt.Sprintf("%s leads %s, not %s", was.Leader, e.Election, strings.Join(p.Leaders, " or "))
	case p.Stays && was.Term != e.Term:
		return fmt.Sprintf("%s leads %s in term %d: it was to go on in term %d", was.Leader, e.Election, was.Term, e.Term)
	case was.TookMS > p.AllowedMS:
		return fmt.Sprintf("%s was without its leader for %s: %s was planned, and %s counts as planned", e.Election, span(was.TookMS), p.span(), milliseconds(p.AllowedMS))
	}
	return ""
}

func (p drillPlanned) span() string {
	if p.Stays {
		return "no time"
	}
	return span(p.EarliestMS) + " to " + span(p.LatestMS)
}

// planPage writes the drill's plan as text.
func (r drillReport) planPage(quorum api.Quorum) string {
	text := fmt.Sprintf("drill of %s: %s\n", printable(r.Election), printable(r.Effect))
	if quorum.Enabled {
		text += fmt.Sprintf("quorum: %d of %d voters can be reached, %d are needed\n", quorum.Reachable, quorum.Voters, quorum.Needed)
	}
	rows := [][]string{{"ELECTION", "NOW", "TERM", "THEN", "TERM", "WITHIN", "COUNTS UP TO", "OTHERWISE"}}
	for _, e := range r.Elections {
		p := e.Planned
		rows = append(rows, []string{e.Election, e.Leader, fmt.Sprint(e.Term), strings.Join(p.Leaders, " or "), fmt.Sprint(p.Term), p.span(), milliseconds(p.AllowedMS).String(), strings.Join(p.Otherwise, " or ")})
	}
	return text + "\n" + table(rows)
}

// page writes the outcome as text.
func (r drillReport) page() string {
	rows := [][]string{{"ELECTION", "LEADER", "TERM", "TOOK", "PLANNED", "NONE", "AS PLANNED"}}
	for _, e := range r.Elections {
		row := []string{e.Election, "", "", "", e.Planned.span(), "", yesNo(e.AsPlanned)}
		if was := e.Was; was != nil {
			row[1], row[2], row[3] = was.Leader, fmt.Sprint(was.Term), span(was.TookMS)
			if was.From != nil {
				row[5] = gapText(was.WithoutMS) + " from " + was.From.Local().Format(timeOfDay)
			}
		}
		rows = append(rows, row)
	}
	text := "\n" + table(rows) + "\n"
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

// terminal reports whether `in` is a terminal, so that a person can answer.
func terminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// agreed reads an answer, and reports whether it is yes.
func agreed(ctx context.Context, in io.Reader) bool {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n') // at the end of the input, the answer counts as no
		line <- strings.ToLower(strings.TrimSpace(text))
	}()
	select {
	case text := <-line:
		return text == "y" || text == "yes"
	case <-ctx.Done():
		return false
	}
}

// within returns an error if now is outside the daily window, for example 02:00-04:00. A window may include
// midnight.
func within(window string, now time.Time) error {
	if window == "" {
		return nil
	}
	first, last, _ := strings.Cut(window, "-")
	from, err := time.Parse("15:04", strings.TrimSpace(first))
	to, bad := time.Parse("15:04", strings.TrimSpace(last))
	if err != nil || bad != nil || from.Equal(to) {
		return usage("write --window 02:00-04:00; it may go over midnight", "drill: --window %q is not a time of day", window)
	}
	first, last = from.Format("15:04"), to.Format("15:04")
	at := now.Format("15:04")
	inside := first <= at && at < last
	if last < first {
		inside = first <= at || at < last
	}
	if inside {
		return nil
	}
	return noDrill(fmt.Sprintf("it is %s, outside the window %s", now.Format("15:04"), window), "the window is in the local time of this host; nothing was done")
}
