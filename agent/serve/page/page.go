// Package page is what people and load balancers see without the API: the status page, and the answers to
// HAProxy's agent checks. The caller provides the facts; this package never decides by itself who leads.
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

const (
	pageRefresh = 3   // seconds until the browser asks for the page again
	pageRows    = 200 // how many rows a table has; the command line shows all
	pageHistory = 12
)

//go:embed page.html
var pageText string

type Facts struct {
	Agent     api.Agent
	Elections []api.Election // sorted by name
	Members   []api.Member
	Jobs      []api.Job
	Past      []api.Transition // the newest last
	Missing   []string         // voters that this agent can't reach
	// Others is what the other agents last reported about themselves; nil: no reports of the last
	// seconds are known.
	Others []api.AgentReport
	Now    time.Time
}

// Past is how many of the newest changes the page looks through.
const Past = 1000

// Handler answers each request with the page as it is at that moment.
func Handler(facts func() Facts) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { send(w, facts()) })
}

// scriptHash is the hash by which the page's headers allow its only script.
func scriptHash() string {
	_, rest, _ := strings.Cut(pageText, "<script>")
	script, _, _ := strings.Cut(rest, "</script>")
	sum := sha256.Sum256([]byte(script))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// send sends the page. The page loads nothing else: no font, no image. Its one script asks for
// the page again. Its headers forbid browsers everything else.
func send(w http.ResponseWriter, f Facts) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src '"+scriptHash()+"'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	rows := f.rows()
	out := strings.NewReplacer("{{refresh}}", strconv.Itoa(pageRefresh), "{{title}}", html.EscapeString(f.title(rows)), "{{main}}", f.body(rows)).Replace(pageText)
	_, _ = io.WriteString(w, out) // the client may have gone
}

func (f Facts) rows() (rows []row) {
	past, names := map[string][]api.Transition{}, []string{}
	for _, c := range f.Past {
		if c.Type != api.ChangeCommand {
			past[c.Election] = join(past[c.Election], c)
		}
		if c.Leader != nil {
			names = append(names, c.Leader.Name)
		}
	}
	for _, m := range f.Members {
		names = append(names, m.Name)
	}
	slices.Sort(names) // sorted, so that a leader has the same colour on the pages of all agents
	names = slices.Compact(names)
	for n, e := range f.Elections {
		r := row{Election: e, names: names}
		if n < pageRows {
			r.since, r.hour = ledFor(e, past[e.Election], f.Now), strip(past[e.Election], f.Now)
		}
		rows = append(rows, r)
	}
	return rows
}

func (f Facts) title(rows []row) string {
	h, who := hero(rows), "nobody"
	if h == nil {
		return f.Agent.Cluster
	}
	if h.Leader != nil {
		who = h.Leader.Name
	}
	return f.Agent.Cluster + ": " + who + " leads"
}

// hero is the election that the page shows first: the only one, or default if it is in use; nil: none.
func hero(all []row) *row {
	for i := range all {
		if len(all) == 1 || all[i].Election.Election == string(election.Default) && all[i].State != api.StateIdle {
			return &all[i]
		}
	}
	return nil
}

// ledFor is for how long the leader has led, as a person would write it.
func ledFor(e api.Election, past []api.Transition, now time.Time) string {
	if e.Leader == nil || len(past) == 0 || past[len(past)-1].Leader == nil || past[len(past)-1].Leader.Name != e.Leader.Name {
		return ""
	}
	since, certain := ledSince(past)
	d := pageDuration(max(0, now.Sub(since).Milliseconds()))
	if !certain {
		return "at least " + d
	}
	return d
}

// pageDuration writes milliseconds so that a person reads them at a glance.
func pageDuration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d > time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	case d >= 10*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%.1f min", d.Minutes())
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d ms", ms)
}
