package serve

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/doyen-election/doyen/api"
)

const (
	pageRefresh = 3   // seconds
	pageRows    = 200 // of a table; for more there is the command line
	pageHistory = 12
)

//go:embed page.html
var pageText string

// page is what the status page shows.
type page struct {
	Title         string
	Agent         api.Agent
	Elections     []api.Election
	MoreElections int
	Members       []api.Member
	MoreMembers   int
	History       []api.Transition // the newest first
	Now           time.Time
	Refresh       int
}

// newPage parses the status page.
func newPage() (*template.Template, error) {
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

// status answers with the page, which loads nothing else: no script, no font, no image. Its
// headers forbid browsers to load any.
func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	var out bytes.Buffer
	t, err := s.page()
	if err == nil {
		err = t.Execute(&out, s.shown())
	}
	if err != nil {
		s.Logger.Error("the status page can't be made", "err", err)
		plain(w, http.StatusInternalServerError, "the status page can't be made; the agent's log shows why\n")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = out.WriteTo(w) // the client may have gone
}

// shown gathers what the page shows, from one picture.
func (s *Server) shown() page {
	p, now := s.Picture(), s.Clock()
	v := page{Agent: s.describe(p), Members: p.Members(), Now: time.Now(), Refresh: pageRefresh}
	for _, c := range p.contests() {
		v.Elections = append(v.Elections, p.Election(*c, now, 0))
	}
	v.Elections, v.MoreElections = firstRows(v.Elections)
	v.Members, v.MoreMembers = firstRows(v.Members)
	if s.History != nil {
		v.History = s.History("", pageHistory)
		slices.Reverse(v.History)
	}
	v.Title = "Doyen: " + s.Name
	for _, e := range v.Elections {
		if e.Election != "default" {
			continue
		}
		v.Title = "Doyen: nobody leads"
		if e.Leader != nil {
			v.Title = "Doyen: " + e.Leader.Name + " leads"
		}
	}
	return v
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
