// Package page is what people and load balancers see without the API: the status page, and the
// answers to HAProxy's agent checks. It is given what they show, and names nobody by itself.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

const (
	pageRefresh = 3   // seconds
	pageRows    = 200 // of a table; for more there is the command line
	pageHistory = 12
)

//go:embed page.html
var pageText string

// row is an election on the status page.
type row struct {
	Now  api.Election
	For  string // how long the leader has led
	Hour []part // who led in the last hour, the oldest first
}

type Facts struct {
	Agent     api.Agent
	Elections []api.Election // sorted by name
	Members   []api.Member
	Past      []api.Transition // the newest last
	Now       time.Time
}

// Past is how many of the newest changes the page looks through.
const Past = 1000

// Handler answers with the page as it is at each request.
func Handler(facts func() Facts, logger *slog.Logger) http.Handler {
	parsed := sync.OnceValues(parsePage) // when it is first asked for
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var out bytes.Buffer
		t, err := parsed()
		if err == nil {
			err = t.Execute(&out, shown(facts()))
		}
		if err != nil {
			logger.Error("the status page can't be made", "err", err)
			http.Error(w, "the status page can't be made; the agent's log shows why", http.StatusInternalServerError)
			return
		}
		send(w, &out)
	})
}

type view struct {
	Title         string
	Agent         api.Agent
	Hero          *row // "default", or the only election
	All, Led      int  // elections, and those with a leader
	Elections     []row
	MoreElections int
	Members       []api.Member
	MoreMembers   int
	History       []api.Transition // the newest first
	Now           time.Time
	Refresh       int
}

// scriptHash is how the page's headers name its only script.
func scriptHash() string {
	_, rest, _ := strings.Cut(pageText, "<script>")
	script, _, _ := strings.Cut(rest, "</script>")
	sum := sha256.Sum256([]byte(script))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func parsePage() (*template.Template, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"ms":          pageDuration,
		"stamp":       func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"join":        func(s []string) string { return strings.Join(s, ", ") },
		"words":       func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"yes":         func(b bool) string { return map[bool]string{true: "yes", false: "no"}[b] },
		"stateClass":  stateClass,
		"statusClass": statusClass,
		"quorumClass": quorumClass,
		"quorumWord":  quorumWord,
		"quorumText":  quorumText,
	}).Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("parse status page: %w", err)
	}
	escape(t.Root)
	return t, nil
}

// escape has the html function escape each value of the template. That suffices, since values
// are only in text and in quoted attributes. html/template also handles scripts and addresses,
// and would make the program 160 kB longer.
func escape(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, child := range n.Nodes {
			escape(child)
		}
	case *parse.IfNode:
		escape(n.List)
		escape(n.ElseList)
	case *parse.RangeNode:
		escape(n.List)
		escape(n.ElseList)
	case *parse.WithNode:
		escape(n.List)
		escape(n.ElseList)
	case *parse.ActionNode:
		html := &parse.CommandNode{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier("html").SetPos(n.Pos)}}
		n.Pipe.Cmds = append(n.Pipe.Cmds, html)
	}
}

// send sends the page, which loads nothing else: no font, no image. Its one script asks for the page
// again. Its headers forbid browsers everything else.
func send(w http.ResponseWriter, out *bytes.Buffer) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src '"+scriptHash()+"'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = out.WriteTo(w) // the client may have gone
}

func shown(f Facts) view {
	v := view{Agent: f.Agent, Members: f.Members, Now: f.Now, Refresh: pageRefresh}
	past := map[string][]api.Transition{}
	for _, c := range f.Past {
		if c.Type != api.ChangeCommand {
			past[c.Election] = join(past[c.Election], c)
		}
	}
	v.History = slices.Clone(f.Past[max(0, len(f.Past)-pageHistory):])
	slices.Reverse(v.History)
	for _, e := range f.Elections {
		r := row{Now: e}
		if len(v.Elections) < pageRows {
			r.For, r.Hour = ledFor(e, past[e.Election], v.Now), strip(past[e.Election], v.Now)
		}
		if e.Leader != nil {
			v.Led++
		}
		v.Elections = append(v.Elections, r)
	}
	v.All = len(v.Elections)
	v.Hero = hero(v.Elections)
	v.Elections, v.MoreElections = firstRows(v.Elections)
	v.Members, v.MoreMembers = firstRows(v.Members)
	v.Title = "Doyen: " + f.Agent.Name
	if v.Hero != nil && v.Hero.Now.Leader != nil {
		v.Title = "Doyen: " + v.Hero.Now.Leader.Name + " leads"
	} else if v.Hero != nil {
		v.Title = "Doyen: nobody leads"
	}
	return v
}

// hero is the election that the page begins with.
func hero(all []row) *row {
	for i := range all {
		if len(all) == 1 || all[i].Now.Election == string(election.Default) {
			return &all[i]
		}
	}
	return nil
}

// ledFor is for how long the leader has led, as a person says it.
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

// NoQuorum is whether nobody can lead for want of voters.
func (v view) NoQuorum() bool {
	return v.Agent.Quorum.Enabled && v.Agent.Quorum.State == api.QuorumLost
}

func firstRows[T any](all []T) (shown []T, more int) {
	n := min(len(all), pageRows)
	return all[:n], len(all) - n
}

// pageDuration writes milliseconds so that a person reads them at a glance.
func pageDuration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return d.Truncate(time.Second).String()
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d ms", ms)
}

func stateClass(state string) string {
	switch state {
	case api.StateLeading, api.StateFollowing:
		return "good"
	case api.StateNoQuorum:
		return "bad"
	}
	return "warn"
}

func statusClass(status string) string {
	switch status {
	case api.StatusAlive:
		return "good"
	case api.StatusDead:
		return "bad"
	}
	return "warn"
}

func quorumClass(q api.Quorum) string {
	switch {
	case !q.Enabled, q.State == api.QuorumEdge:
		return "warn"
	case q.State == api.QuorumLost:
		return "bad"
	}
	return "good"
}

func quorumWord(q api.Quorum) string {
	switch {
	case !q.Enabled:
		return "Quorum is off:"
	case q.State == api.QuorumEdge && q.Voters > 1:
		return "Quorum on the edge:"
	case q.State == api.QuorumLost:
		return "Quorum lost:"
	}
	return "Quorum:"
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
