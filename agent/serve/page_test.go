package serve_test

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

// glance stands for a person's browser on the TCP listener.
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
	for _, want := range []string{"<title>Doyen: a leads</title>", `<p class="who">a</p>`, "for 4m0s, term 7, this agent", `<i class="l`, `title="nobody for 1.1 s"`, `href="http://10.0.0.2:7980/">b</a>`,
		`>leading</span></td>`, ">1.0 s</td>", ">a, b</td>",
		"Quorum on the edge:", "2 of 3 voters reachable, 2 needed; if one more is lost", "<b>join_failing</b>: &lt;b&gt;no&lt;/b&gt;", "&lt;script&gt;alert", ">1.1 s</td>"} {
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
	for _, not := range []string{"<script ", "src=", "https://", "//cdn"} {
		if strings.Contains(text, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if changes := text[strings.Index(text, "Last changes"):]; strings.Index(changes, "1.1 s") > strings.Index(changes, "alert") {
		t.Error("the newest change is not the first")
	}
	a.now.Add(int64(2 * time.Second)) // the lease is over, and the agent hangs
	if _, text = glance(t, server, "/"); !strings.Contains(text, "<title>Doyen: nobody leads</title>") || strings.Contains(text, "(this agent)") {
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
