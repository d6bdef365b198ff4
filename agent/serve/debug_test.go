package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

func withDebug(c *serve.Config) {
	c.Debug = map[string]func() []byte{"log": func() []byte { return []byte("a line\n") }}
}

func TestTheEndpointsForBugReportsAnswerAdministrators(t *testing.T) {
	a := stand(t, withDebug)
	for path, want := range map[string]string{"/v1/debug/log": "a line\n", "/v1/debug/goroutines": "goroutine profile:", "/v1/debug/profile?seconds=1": "\x1f\x8b"} {
		if status, text := a.do(t, http.MethodGet, path, ""); status != 200 || !strings.HasPrefix(text, want) {
			t.Errorf("%s: %d %.60q", path, status, text)
		}
	}
	for path, want := range map[string]int{"/v1/debug/none": 404, "/v1/debug/profile?seconds=0": 400, "/v1/debug/profile?seconds=31": 400, "/v1/debug/profile?seconds=x": 400} {
		if status, text := a.do(t, http.MethodGet, path, ""); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestTheEndpointsForBugReportsAreForAdministratorsOnTheSocketAlone(t *testing.T) {
	t.Parallel() // the test waits
	a := stand(t, withDebug, func(c *serve.Config) { c.Access = policy(t, access.Config{}, access.Owner{UID: 1 << 20, GID: 1 << 20}) })
	var server *serve.Server
	stand(t, withDebug, func(c *serve.Config) { server = serve.New(*c) })
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.TCP(l)
	for _, part := range []string{"log", "goroutines", "profile", "none"} {
		path := "/v1/debug/" + part
		// Root may do all. Any other user who runs this test is not the agent's user.
		if status, text := a.do(t, http.MethodGet, path+"?seconds=1", ""); status != 403 && os.Geteuid() != 0 {
			t.Errorf("%s by another user: %d %s", path, status, text)
		}
		answer, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != 404 {
			t.Errorf("%s over TCP: %d", path, answer.StatusCode)
		}
		if out := server.Forwarded(t.Context(), "peer-b", election.Call{Method: http.MethodGet, Path: path}); out.Status != 404 {
			t.Errorf("%s for another agent: %d %s", path, out.Status, out.Body)
		}
	}
}

func TestTheLogLevelIsChangedForAWhile(t *testing.T) {
	var level string
	var limit time.Duration
	a := stand(t, func(c *serve.Config) {
		c.LogLevel = func(l string, d time.Duration) string { level, limit = l, d; return "warn" }
	})
	for _, wrong := range []string{"", `{"level":"debug"}`, `{"level":"loud","for_ms":1000}`, `{"level":"debug","for_ms":999}`, `{"level":"debug","for_ms":86400001}`, `{"level":"debug","for_ms":-1}`} {
		if status, text := a.do(t, http.MethodPost, "/v1/log-level", wrong); status != 400 || level != "" {
			t.Errorf("%s: %d %s", wrong, status, text)
		}
	}
	status, text := a.do(t, http.MethodPost, "/v1/log-level", `{"level":"debug","for_ms":300000}`)
	var got api.LogLevel
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || level != "debug" || limit != 5*time.Minute ||
		got.Level != "debug" || got.Then != "warn" || time.Until(got.Until) < 4*time.Minute || time.Until(got.Until) > 5*time.Minute {
		t.Errorf("%d %s, %v", status, text, err)
	}
}

// Asked for a trial of ports, an agent tries only those of the agent that asks.
func TestAnAgentTriesThePortsOfTheOneThatAsks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	defer l.Close()
	o := &other{answer: election.CallAnswer{Status: 200, Body: []byte(`{"agents":[{"name":"b","reached":true}]}`)}}
	lost := errors.New("3 pings were not answered")
	a, server := voter(t, o, "peer-a", "peer-b")
	server.Pings = func(membership.Member) error { return lost }
	b := &a.picture.Load().View.Members[1]
	b.GossipAddr, b.PeerAddr = netip.MustParseAddrPort(l.Addr().String()), netip.MustParseAddrPort(gone.Addr().String())
	ask := func(from election.PeerID, path string) []api.Dial {
		var all api.Agents
		out := server.Forwarded(t.Context(), from, election.Call{Method: http.MethodGet, Path: path})
		if err := json.Unmarshal(out.Body, &all); err != nil || len(all.Agents) != 1 {
			t.Fatalf("%s: %s", path, out.Body)
		}
		return all.Agents[0].Dials
	}
	got := ask("peer-b", "/v1/agents?dial=back")
	want := []api.Dial{{Port: api.DialGossipTCP, Addr: l.Addr().String()}, {Port: api.DialPeerTCP, Addr: gone.Addr().String(), Error: "connection refused"},
		{Port: api.DialGossipUDP, Addr: l.Addr().String(), Error: lost.Error()}}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %+v, want %+v", got, want)
	}
	lost = nil
	if got := ask("peer-b", "/v1/agents?dial=back"); len(got) != 3 || got[2].Error != "" {
		t.Errorf("after an answered ping: %+v", got)
	}
	if got := ask("peer-b", "/v1/agents"); got != nil {
		t.Errorf("dialled without being asked to: %+v", got)
	}
	if got := ask("peer-z", "/v1/agents?dial=back"); got != nil {
		t.Errorf("dialled for an agent that is not a member: %+v", got)
	}
	roster := a.picture.Load().Status.Roster
	roster.Voters = roster.Voters[:1]
	if got := ask("peer-b", "/v1/agents?dial=back"); got != nil {
		t.Errorf("dialled for an agent that does not vote: %+v", got)
	}
	status, text := a.do(t, http.MethodGet, "/v1/agents?dial=back", "")
	if status != 200 || len(o.asked) != 1 || o.asked[0].Path != "/v1/agents?dial=back" {
		t.Errorf("%d, asked %+v", status, o.asked)
	}
	if !strings.Contains(text, `"dials":[{"port":"gossip-udp","addr":"`+l.Addr().String()+`","error":"not tried"}]`) {
		t.Errorf("it has not tried the way to the other one: %s", text)
	}
}
