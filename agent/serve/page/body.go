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

// raw is HTML. All other text is escaped when it is put on the page. That suffices, since
// values are only in text and in quoted attributes.
type raw string

// put fills values into HTML, at %s and %v.
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

// wide marks a cell that phones don't show. number marks such a cell if it has a number.
const wide, number raw = ` class="wide"`, ` class="n wide"`

// table is a section of the page with the first pageRows of a list. The command lists the others.
func table[T any](heading, command string, columns []column, list []T, cells func(T) []any) raw {
	line := func(tag string, cell func(i int) any) (text raw) {
		for i, c := range columns {
			text += put("<"+tag+"%s>%s</"+tag+">", c.attributes, cell(i))
		}
		return "<tr>" + text + "</tr>\n"
	}
	body := raw("")
	for _, row := range list[:min(len(list), pageRows)] {
		r := cells(row)
		body += line("td", func(i int) any { return r[i] })
	}
	return put("<h2>%s</h2>\n", heading) + "<div class=\"box\"><table>\n<thead>" + line("th", func(i int) any { return columns[i].label }) + "</thead>\n<tbody>\n" + body +
		"</tbody></table></div>\n" + more(len(list)-pageRows, command)
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
	since string   // how long the leader has led
	hour  []part   // who led in the last hour, the oldest first
	names []string // of all former leaders and all members, sorted
}

// body is what is between <main> and </main>.
func (f Facts) body(rows []row) string {
	a, text := f.Agent, raw("")
	if a.Quorum.Enabled && a.Quorum.State == api.QuorumLost {
		text += put("<p class=\"banner\" role=\"alert\">No quorum: nobody can lead. Missing: %s</p>\n", strings.Join(f.Missing, ", "))
	}
	text += put("<header>\n<h1>%s</h1>\n<span class=\"soft\">Doyen cluster, as agent %s sees it</span>\n</header>\n<div class=\"top\">\n", a.Cluster, a.Name)
	if h := hero(rows); h != nil {
		text += h.hero()
	}
	text += f.quorum() + "</div>\n" + f.attention()
	if len(rows) > 1 {
		text += electionsTable(rows)
	}
	if len(f.Jobs) > 0 {
		text += jobsTable(f.Jobs)
	}
	text += membersTable(f.Members)
	if list := f.changes(); list != "" {
		text += "<h2>Last changes</h2>\n<div class=\"box\">\n" + list + "</div>\n"
	}
	return string(text + put("<footer><span id=\"zone\">Times are UTC.</span> Seen by agent %s (version %s, %s, lease %s, up %s) at %s; refreshed every %v s. What is shown may be outdated when it is read: programs should ask /leader, or the socket. The docs are on each host with a package too: /usr/share/doc/doyen/docs.</footer>\n",
		a.Name, a.Version, a.Algorithm, pageDuration(a.LeaseMS), pageDuration(a.UptimeMS), stamp(f.Now), pageRefresh))
}

// stamp is a time in UTC, which the page's script changes to the time of its reader.
func stamp(t time.Time) raw {
	return put(`<time datetime="%s">%s</time>`, t.UTC().Format(time.RFC3339Nano), t.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// card is one of the large answers at the top of the page.
func card(class, label, answer, small string, more raw) raw {
	return put("<section class=\"card %s\">\n<p class=\"soft\">%s</p>\n<p class=\"who\">%s</p>\n<p class=\"soft\">%s</p>\n%s</section>\n", class, label, answer, small, more)
}

// hero is the HTML of the election that the page shows first.
func (r *row) hero() raw {
	class, label, answer, small, others := "hero bad", "Election ", "Nobody leads", fmt.Sprint("term ", r.Term), r.Candidates
	if r.Leader != nil {
		class, label, answer = "hero good", "Leader of ", r.Leader.Name
		others = slices.DeleteFunc(slices.Clone(others), func(name string) bool { return name == answer })
		if r.Leader.Meta != "" {
			small += ", meta " + r.Leader.Meta
		}
	}
	if r.since != "" {
		small = "for " + r.since + ", " + small
	}
	small += "; could take over: " + cmp.Or(strings.Join(others, ", "), "no other host")
	return card(class, label+r.Election.Election, answer, small, r.strip()+
		put("<div class=\"ends\"><span>an hour ago</span><b>%s</b><span>now</span></div>\n<p class=\"legend\"><i class=\"nobody\"></i> nobody <i class=\"tick\"></i> nobody, for less than %v s <i class=\"unknown\"></i> not known</p>\n", loss(r.hour), tickTime.Seconds()))
}

func (r *row) strip() raw {
	parts := raw("")
	for _, p := range r.hour {
		class, what := p.look(r.names)
		parts += put(`<i class="%s" style="flex-grow: %v" title="%s for %s">%s</i>`, class, p.For.Seconds(), what, pageDuration(p.For.Milliseconds()), p.Leader)
	}
	return put("<div class=\"strip\">%s</div>\n", parts)
}

func (f Facts) quorum() raw {
	q := f.Agent.Quorum
	class, answer, small := "good", fmt.Sprintf("%d of %d voters", q.Reachable, q.Voters), fmt.Sprintf("reachable, %d needed", q.Needed)
	switch {
	case !q.Enabled:
		class, answer, small = "warn", "Off", "this is one agent's view; there may be two leaders"
	case q.Voters == 0:
		class, answer, small = "bad", "No voters yet", "the agents have not agreed on the first voters"
	case q.State == api.QuorumLost:
		class, small = "bad", small+": nobody can lead"
	case q.State == api.QuorumEdge && q.Voters > 1:
		class, small = "warn", small+"; if one more is lost, nobody can lead"
	}
	if len(f.Missing) > 0 {
		small += ". Missing: " + strings.Join(f.Missing, ", ")
	}
	return card("quorum "+class, "Quorum", answer, small, "")
}

func electionsTable(rows []row) raw {
	columns := []column{{label: "Election"}, {label: "Leader"}, {label: "For"}, {"Last hour", wide}, {"Term", number}, {"Lease left", number}, {label: "Here"}, {"Candidates", wide}}
	return table("Elections", "elections", columns, rows, func(r row) []any {
		leader, lease := raw(`<span class="bad">nobody</span>`), "–"
		if r.Leader != nil {
			leader, lease = put("<b>%s</b>", r.Leader.Name), pageDuration(r.LeaseRemainingMS)
		}
		class := cmp.Or(map[string]string{api.StateLeading: "good", api.StateFollowing: "good", api.StateNoQuorum: "bad"}[r.State], "warn")
		return []any{r.Election.Election, leader, cmp.Or(r.since, "–"), r.strip(), r.Term, lease,
			state(class, strings.ReplaceAll(r.State, "_", " ")), strings.Join(r.Candidates, ", ")}
	})
}

func jobsTable(jobs []api.Job) raw {
	columns := []column{{label: "Job"}, {"Runs", wide}, {label: "Last end"}, {label: "Next start"}, {"Spec", wide}}
	return table("Jobs", "jobs", columns, jobs, func(j api.Job) []any {
		now, last, next := put("–"), put("–"), put("–")
		if r := j.Running; r != nil {
			now = put("%s, since %s", r.Occurrence, stamp(r.Since))
		}
		if e := j.Last; e != nil {
			class := cmp.Or(map[string]string{"finished": "good", "unknown": "warn"}[e.End], "bad")
			last = state(class, e.End) + put(" %s", stamp(e.When))
		}
		if j.Next != nil {
			next = stamp(*j.Next)
		}
		return []any{j.Election, now, last, next, strings.TrimSpace(j.Spec + " " + j.Zone)}
	})
}

func membersTable(members []api.Member) raw {
	yes, link := map[bool]string{true: "yes", false: "no"}, map[bool]raw{true: state("good", "up"), false: state("bad", "none")}
	columns := []column{{label: "Name"}, {label: "Status"}, {label: "Votes"}, {"Priority", number}, {label: "Link"}, {"Address", wide}, {"Version", wide}}
	return table("Members", "members", columns, members, func(m api.Member) []any {
		name, priority, status := put("%s", m.Name), "–", m.Status
		if m.HTTPAddr != "" {
			name = put(`<a href="http://%s/">%s</a>`, m.HTTPAddr, m.Name)
		}
		if m.Candidate {
			priority = strconv.Itoa(m.Priority)
		}
		if m.Status == api.StatusAlive && m.Drained {
			status = "drained"
		}
		class := cmp.Or(map[string]string{api.StatusAlive: "good", api.StatusDead: "bad"}[status], "warn")
		return []any{name, state(class, status), yes[m.Voter], priority, link[m.Connected], m.PeerAddr, m.Version}
	})
}
