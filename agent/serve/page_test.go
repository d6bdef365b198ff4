package serve_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

// glance asks the TCP listener for a page, as a browser does.
func glance(t *testing.T, s *serve.Server, path string) (*http.Response, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.TCP(l)
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://" + l.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func TestTheStatusPageTellsWhoLeadsAndRunsNothing(t *testing.T) {
	var server *serve.Server
	began := time.Now()
	a := stand(t, func(c *serve.Config) {
		c.History = func(string, int) []api.Transition {
			return []api.Transition{{Election: "default", Type: api.ChangeNoLeader, Term: 6, Time: began.Add(-4*time.Minute - 1130*time.Millisecond), Reason: `</td><script>alert(1)</script>`},
				{Election: "default", Type: api.ChangeLeader, Leader: &api.Leader{Name: "a"}, Term: 7, GapMS: 1130, Time: began.Add(-4 * time.Minute)},
				{Election: "default", Type: api.ChangeCommand, Reason: "resign", Time: time.Now()}}
		}
		server = serve.New(*c)
	})
	p := *a.picture.Load()
	p.Status.Contests[0].Meta = "<m>"
	b := member("b")
	b.PageAddr = netip.MustParseAddrPort("10.0.0.2:7980")
	p.View = &membership.View{Members: []membership.Member{member("a"), b}}
	p.Warnings = []api.Warning{{Code: "join_failing", Message: "<b>no</b>", Since: time.Now()}}
	a.picture.Store(&p)
	t.Cleanup(func() { _ = server.Close(t.Context()) })
	response, text := glance(t, server, "/")
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/html; charset=utf-8" ||
		!strings.HasPrefix(response.Header.Get("Content-Security-Policy"), "default-src 'none'; style-src 'unsafe-inline'") {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
	for _, want := range []string{"<title>x: a leads</title>", "<h1>x</h1>", "as agent a sees it", `<p class="who">a</p>`, "for 4.0 min, term 7, meta &lt;m&gt;; could take over: b", `<i class="l`, `title="nobody for 1.1 s"`,
		"<b>nobody for 1.1 s of 4.0 min</b>", `<i class="tick"></i> nobody, for less than 30 s`, `href="http://10.0.0.2:7980/">b</a>`,
		"2 of 3 voters", "reachable, 2 needed; if one more is lost, nobody can lead", `<span class="text">&lt;b&gt;no&lt;/b&gt;</span>`, "what to do about join_failing</a>",
		"&lt;script&gt;alert", "a leads default: &lt;/td&gt;", `<time datetime="`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	_, script, _ := strings.Cut(text, "<script>")
	script, rest, _ := strings.Cut(script, "</script>")
	hash := sha256.Sum256([]byte(script))
	if !strings.Contains(response.Header.Get("Content-Security-Policy"), "script-src 'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'; connect-src 'self';") || strings.Contains(rest, "<script") {
		t.Error("the headers allow another script than the page's own")
	}
	for _, not := range []string{"<script ", "src=", "<link", "@import", "url("} {
		if strings.Contains(text, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if changes := text[strings.Index(text, "Last changes"):]; strings.Index(changes, ">resign<") > strings.Index(changes, "1.1 s") {
		t.Error("the newest change is not the first")
	}
	a.now.Add(int64(2 * time.Second)) // the lease has ended, and the agent hangs
	if _, text = glance(t, server, "/"); !strings.Contains(text, "<title>x: nobody leads</title>") || strings.Contains(text, "Leader of") {
		t.Error("a leader is named whose lease is over")
	}
	if response, _ := glance(t, server, "/x"); response.StatusCode != http.StatusNotFound {
		t.Errorf("/x: %d", response.StatusCode)
	}
	if status, _ := a.do(t, http.MethodGet, "/", ""); status != http.StatusNotFound {
		t.Errorf("/ on the socket: %d", status)
	}
}

func TestTheStatusPageHoldsNoMoreThanItShould(t *testing.T) {
	var server *serve.Server
	a := stand(t, func(c *serve.Config) { server = serve.New(*c) })
	p := *a.picture.Load()
	status := *p.Status
	status.Contests = slices.Repeat([]*elector.ContestStatus{{Election: "default"}}, 1000)
	p.Status = &status
	a.picture.Store(&p)
	t.Cleanup(func() { _ = server.Close(t.Context()) })
	if _, text := glance(t, server, "/"); !strings.Contains(text, "and 800 more: doyen elections lists them") || len(text) > 200_000 {
		t.Errorf("%d bytes", len(text))
	}
}

// neighbour plays all other agents, and counts the calls.
type neighbour struct{ asked atomic.Int64 }

func (n *neighbour) Call(_ context.Context, to election.PeerID, c election.Call) (election.CallAnswer, error) {
	n.asked.Add(1)
	body, err := json.Marshal(api.Agents{Agents: []api.AgentReport{{Reached: true, Warnings: []api.Warning{{Code: "join_failing", Message: "of " + string(to) + " by " + c.Path}}}}})
	return election.CallAnswer{Status: 200, Body: body}, err
}

// However many people look at the page, the other agents are asked once in ten seconds.
func TestTheStatusPageHasTheWarningsOfAllAgentsAtABoundedCost(t *testing.T) {
	var server *serve.Server
	other := &neighbour{}
	a := stand(t, func(c *serve.Config) { c.Other = other; server = serve.New(*c) })
	p := *a.picture.Load()
	p.View = &membership.View{Members: []membership.Member{member("a"), member("b")}}
	a.picture.Store(&p)
	t.Cleanup(func() { _ = server.Close(t.Context()) })
	shows := func(want string) {
		t.Helper()
		for limit := time.Now().Add(patience); ; {
			_, text := glance(t, server, "/")
			if strings.Contains(text, want) {
				return
			}
			if time.Now().After(limit) {
				t.Fatalf("the page never shows %q:\n%s", want, text)
			}
		}
	}
	shows("of peer-b by /v1/agents")
	for range 20 {
		glance(t, server, "/")
	}
	if n := other.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	a.now.Add(int64(25 * time.Second)) // nobody asks for the page in this time
	if _, text := glance(t, server, "/"); strings.Contains(text, "of peer-b") {
		t.Error("old warnings are shown as if they were new")
	}
	shows("of peer-b by /v1/agents")
	if n := other.asked.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}
