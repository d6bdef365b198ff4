package page

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
)

// raw is HTML. All else that is put on the page is escaped, which suffices as values are only in
// text and in quoted attributes.
type raw string

// put fills values into HTML, where %s and %v are.
func put(format string, values ...any) raw {
	for i, v := range values {
		if _, done := v.(raw); !done {
			values[i] = html.EscapeString(fmt.Sprint(v))
		}
	}
	return raw(fmt.Sprintf(format, values...))
}

// column is a column of a table: its heading, and the attributes of its cells.
type column struct {
	label      string
	attributes raw
}

const number raw = ` class="n"`

func table(columns []column, rows [][]any) raw {
	var t strings.Builder
	t.WriteString("<div class=\"box\"><table>\n<thead><tr>")
	for _, c := range columns {
		t.WriteString(string(put("<th%s>%s</th>", c.attributes, c.label)))
	}
	t.WriteString("</tr></thead>\n<tbody>")
	for _, r := range rows {
		t.WriteString("\n<tr>")
		for i, content := range r {
			t.WriteString(string(put(`<td%s data-label="%s">%s</td>`, columns[i].attributes, columns[i].label, content)))
		}
		t.WriteString("</tr>")
	}
	t.WriteString("\n</tbody></table></div>\n")
	return raw(t.String())
}

func state(class, word string) raw { return put(`<span class="state %s">%s</span>`, class, word) }

func more(n int, what string) raw {
	if n <= 0 {
		return ""
	}
	return put("<p class=\"soft\">and %v more: doyen %s lists them</p>\n", n, what)
}

// row is an election on the page.
type row struct {
	api.Election
	since string // how long the leader has led
	hour  []part // who led in the last hour, the oldest first
}

// body is what is between <main> and </main>.
func (f Facts) body(rows []row) string {
	a, text := f.Agent, raw("")
	if a.Quorum.Enabled && a.Quorum.State == api.QuorumLost {
		text += put("<p class=\"banner\" role=\"alert\">No quorum: nobody can lead. %s</p>\n", quorumText(a.Quorum))
	}
	text += put("<header>\n<h1>Agent %s</h1>\n<span class=\"soft\">cluster %s, algorithm %s, lease %s</span>\n</header>\n", a.Name, a.Cluster, a.Algorithm, pageDuration(a.LeaseMS))
	if h := hero(rows); h != nil {
		text += h.hero()
	}
	led := 0
	for _, r := range rows {
		if r.Leader != nil {
			led++
		}
	}
	if len(rows) > 1 {
		text += put("<p>%s have a leader.</p>\n", state(goodOrBad(led == len(rows)), fmt.Sprintf("%d of %d elections", led, len(rows))))
	}
	text += put("<p>%s %s</p>\n", state(quorumState(a.Quorum)), quorumText(a.Quorum))
	if a.Draining {
		text += "<p><span class=\"state warn\">Draining:</span> this agent can't be elected.</p>\n"
	}
	if len(a.Warnings) > 0 {
		text += "<h2>Warnings</h2>\n<ul>"
		for _, w := range a.Warnings {
			text += put(`<li><b>%s</b>: %s <span class="soft">since %s</span></li>`, w.Code, w.Message, stamp(w.Since))
		}
		text += "</ul>\n"
	}
	text += electionsTable(rows) + membersTable(f.Members)
	if len(f.Past) > 0 {
		text += historyTable(f.Past[max(0, len(f.Past)-pageHistory):])
	}
	return string(text + put("<footer>Seen by agent %s (version %s, up %s) at %s; refreshed every %v s. What is shown may be outdated when it is read: programs should ask /leader, or the socket.</footer>\n",
		a.Name, a.Version, pageDuration(a.UptimeMS), stamp(f.Now), pageRefresh))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// hero is how the page shows the election that it begins with.
func (r *row) hero() raw {
	who, of, state, led := raw(`<span class="bad">Nobody leads</span>`), "Election ", " bad", ""
	if r.Leader != nil {
		who, of, state = put("%s", r.Leader.Name), "Leader of ", ""
	}
	if r.since != "" {
		led = "for " + r.since + ", "
	}
	here := ""
	if r.IsLeader {
		here = ", this agent"
	}
	return put("<section class=\"hero%s\">\n<p class=\"soft\">%s%s</p>\n<p class=\"who\">%s</p>\n<p class=\"soft\">%sterm %v%s</p>\n%s\n<div class=\"ends\"><span>an hour ago</span><span>now</span></div>\n</section>\n",
		state, of, r.Election.Election, who, led, r.Term, here, r.strip())
}

func (r *row) strip() raw {
	parts := raw("")
	for _, p := range r.hour {
		parts += put(`<i class="%s" style="flex-grow: %v" title="%s"></i>`, p.Class(), p.PerMille(), p.Title())
	}
	return put(`<div class="strip">%s</div>`, parts)
}

func electionsTable(rows []row) raw {
	var cells [][]any
	for _, r := range rows[:min(len(rows), pageRows)] {
		leader, lease, class := raw(`<span class="bad">nobody</span>`), "–", "warn"
		if r.Leader != nil {
			leader, lease = put("<b>%s</b>", r.Leader.Name), pageDuration(r.LeaseRemainingMS)
		}
		switch r.State {
		case api.StateLeading, api.StateFollowing:
			class = "good"
		case api.StateNoQuorum:
			class = "bad"
		}
		cells = append(cells, []any{r.Election.Election, leader, cmp.Or(r.since, "–"), r.strip(), r.Term, lease,
			state(class, strings.ReplaceAll(r.State, "_", " ")), strings.Join(r.Candidates, ", ")})
	}
	return "<h2>Elections</h2>\n" + table([]column{{label: "Election"}, {label: "Leader"}, {label: "For"}, {label: "Last hour"}, {"Term", number}, {"Lease left", number}, {label: "State here"}, {label: "Candidates"}}, cells) +
		more(len(rows)-pageRows, "elections")
}

func membersTable(members []api.Member) raw {
	yes := map[bool]string{true: "yes", false: "no"}
	var cells [][]any
	for _, m := range members[:min(len(members), pageRows)] {
		name, priority, class := put("%s", m.Name), "–", "warn"
		if m.HTTPAddr != "" {
			name = put(`<a href="http://%s/">%s</a>`, m.HTTPAddr, m.Name)
		}
		if m.Candidate {
			priority = strconv.Itoa(m.Priority)
		}
		if m.Status == api.StatusAlive || m.Status == api.StatusDead {
			class = goodOrBad(m.Status == api.StatusAlive)
		}
		cells = append(cells, []any{name, state(class, m.Status), yes[m.Voter], yes[m.Candidate], priority, yes[m.Connected], m.PeerAddr, m.Version})
	}
	return "<h2>Members</h2>\n" + table([]column{{label: "Name"}, {label: "Status"}, {label: "Votes"}, {label: "Candidate"}, {"Priority", number}, {label: "Direct connection"}, {label: "Address"}, {label: "Version"}}, cells) +
		more(len(members)-pageRows, "members")
}

// historyTable shows the newest change first.
func historyTable(past []api.Transition) raw {
	var cells [][]any
	for _, c := range slices.Backward(past) {
		leader, gap, evidence := raw(`<span class="soft">nobody</span>`), "–", raw("")
		if c.Leader != nil {
			leader = put("%s", c.Leader.Name)
		}
		if c.GapMS != 0 {
			gap = pageDuration(c.GapMS)
		}
		if c.Evidence != "" {
			evidence = put(` <span class="soft">%s</span>`, c.Evidence)
		}
		cells = append(cells, []any{stamp(c.Time), c.Election, leader, c.Term, gap, put("<span>%s%s</span>", c.Reason, evidence)})
	}
	return "<h2>Last changes</h2>\n" + table([]column{{label: "Time"}, {label: "Election"}, {label: "Leader"}, {"Term", number}, {"Gap", number}, {"Why", ` class="why"`}}, cells)
}

func goodOrBad(good bool) string {
	if good {
		return "good"
	}
	return "bad"
}

func quorumState(q api.Quorum) (class, word string) {
	switch {
	case !q.Enabled:
		return "warn", "Quorum is off:"
	case q.State == api.QuorumEdge && q.Voters > 1:
		return "warn", "Quorum on the edge:"
	case q.State == api.QuorumEdge:
		return "warn", "Quorum:"
	case q.State == api.QuorumLost:
		return "bad", "Quorum lost:"
	}
	return "good", "Quorum:"
}

func quorumText(q api.Quorum) string {
	switch {
	case !q.Enabled:
		return "this is one agent's view; there may be two leaders."
	case q.Voters == 0:
		return "the agents have not agreed on the first voters yet."
	}
	text := fmt.Sprintf("%d of %d voters reachable, %d needed", q.Reachable, q.Voters, q.Needed)
	if q.State == api.QuorumEdge && q.Voters > 1 {
		text += "; if one more is lost, nobody can lead"
	}
	return text + "."
}
