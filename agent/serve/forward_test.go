package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// other is the agents behind a fake one: it keeps what they are asked, and answers.
type other struct {
	asked  []election.Call
	to     election.PeerID
	answer election.CallAnswer
	err    error
}

func (o *other) Call(_ context.Context, to election.PeerID, c election.Call) (election.CallAnswer, error) {
	o.to, o.asked = to, append(o.asked, c)
	return o.answer, o.err
}

// voter stands a fake agent whose roster has the agents, and which b leads.
func voter(t *testing.T, o *other, voters ...election.PeerID) (*agent, *serve.Server) {
	t.Helper()
	var server *serve.Server
	a := stand(t, func(c *serve.Config) {
		c.Other = o
		server = serve.New(*c)
	})
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	a.shows(elector.Following, election.Holder{Peer: "peer-b", Lineage: 2}, 7, a.clock().Add(1e9))
	roster := &election.Roster{}
	for _, v := range voters {
		roster.Voters = append(roster.Voters, election.Voter{Peer: v, Name: strings.TrimPrefix(string(v), "peer-")})
	}
	a.picture.Load().Status.Roster = roster
	return a, server
}

func TestOrdersGoToTheAgentThatMustDoThem(t *testing.T) {
	o := &other{answer: election.CallAnswer{Status: 200, Body: []byte(`{"done":true,"message":"fine","waited_ms":3}`)}}
	a, _ := voter(t, o, "peer-a", "peer-b")
	for path, body := range map[string]string{
		"/v1/elections/default/resign": "{}", "/v1/elections/default/transfer": `{"to":"a"}`, "/v1/drain": `{"on":true,"agent":"b"}`,
	} {
		o.asked = nil
		status, text := a.do(t, http.MethodPost, path, body)
		if status != 200 || !strings.Contains(text, "agent b: fine") || len(o.asked) != 1 || o.to != "peer-b" ||
			o.asked[0].Path != path || o.asked[0].Method != http.MethodPost || string(o.asked[0].Body) != body || !strings.HasPrefix(o.asked[0].Caller, "user ") {
			t.Errorf("%s: %d %s, asked %+v of %s", path, status, text, o.asked, o.to)
		}
	}
	o.answer = election.CallAnswer{Status: 409, Body: []byte(`{"error":{"code":"draining","message":"it is drained"}}`)}
	if status, text := a.do(t, http.MethodPost, "/v1/elections/default/resign", ""); status != 409 || !strings.Contains(text, `"draining"`) || !strings.Contains(text, "agent b: it is drained") {
		t.Errorf("a refusal: %d %s", status, text)
	}
	for _, broken := range []election.CallAnswer{{Status: 503}, {Status: 200, Body: []byte("<html>")}} {
		o.answer = broken
		if status, text := a.do(t, http.MethodPost, "/v1/elections/default/resign", ""); status != 503 || !strings.Contains(text, "try again") {
			t.Errorf("%+v: %d %s", broken, status, text)
		}
	}
	o.err = context.DeadlineExceeded
	if status, text := a.do(t, http.MethodPost, "/v1/elections/default/resign", ""); status != 503 || !strings.Contains(text, "run the command on b") {
		t.Errorf("no answer: %d %s", status, text)
	}
	if status, _ := a.do(t, http.MethodPost, "/v1/drain", `{"on":true,"agent":"nobody"}`); status != 404 {
		t.Errorf("an unknown agent: %d", status)
	}
}

func TestAnAgentThatIsNoVoterForwardsNothing(t *testing.T) {
	o := &other{}
	a, _ := voter(t, o, "peer-b")
	a.on = func(election.Input) (election.Reply, error) {
		return election.Reply{Refusal: &election.Refusal{Why: election.DeniedNotLeader}}, nil
	}
	if status, _ := a.do(t, http.MethodPost, "/v1/elections/default/resign", ""); status != 409 {
		t.Errorf("resign: %d", status)
	}
	if status, _ := a.do(t, http.MethodPost, "/v1/drain", `{"on":true,"agent":"b"}`); status != 403 {
		t.Errorf("drain: %d", status)
	}
	if len(o.asked) != 0 {
		t.Errorf("asked %+v", o.asked)
	}
}

func TestOnlyVotersForwardOrders(t *testing.T) {
	o := &other{}
	a, server := voter(t, o, "peer-a", "peer-b")
	drained := 0
	a.on = func(in election.Input) (election.Reply, error) {
		if _, ok := in.(election.Drain); ok {
			drained++
		}
		return election.Reply{}, nil
	}
	drain := election.Call{Method: "POST", Path: "/v1/drain", Body: []byte(`{"on":true}`), Caller: "user root"}
	if got := server.Forwarded(t.Context(), "peer-x", drain); got.Status != 403 || !strings.Contains(string(got.Body), "only from agents that are voters") || drained != 0 {
		t.Errorf("a forged forward: %d %s", got.Status, got.Body)
	}
	if got := server.Forwarded(t.Context(), "peer-b", drain); got.Status != 200 || drained != 1 {
		t.Errorf("a voter's: %d %s", got.Status, got.Body)
	}
	// Nothing is forwarded twice: b leads, and a does not ask it.
	a.on = func(election.Input) (election.Reply, error) {
		return election.Reply{Refusal: &election.Refusal{Why: election.DeniedNotLeader}}, nil
	}
	if got := server.Forwarded(t.Context(), "peer-b", election.Call{Method: "POST", Path: "/v1/elections/default/resign"}); got.Status != 409 || len(o.asked) != 0 {
		t.Errorf("forwarded twice: %d %s, asked %+v", got.Status, got.Body, o.asked)
	}
	for path, want := range map[string]uint64{
		"/v1/leave": 404, "/v1/restart": 404, "/v1/keys": 404, "/v1/voters": 404, "/v1/elections/default/campaign": 404, "/metrics": 404,
		"//v1/drain": 400, "/v1/../v1/drain": 400, "nonsense": 400, "/v1/drain\n": 400, "": 400,
	} {
		if got := server.Forwarded(t.Context(), "peer-b", election.Call{Method: "POST", Path: path, Body: []byte("{")}); got.Status != want {
			t.Errorf("%q: %d %s, want %d", path, got.Status, got.Body, want)
		}
	}
}

func TestEveryAgentIsAskedAboutItself(t *testing.T) {
	o := &other{answer: election.CallAnswer{Status: 200, Body: []byte(`{"agents":[{"name":"forged","id":"x","version":"2","draining":true,"warnings":[],"keys":[{"fingerprint":"k"}],"lag_ms":4,"reached":true}]}`)}}
	a, server := voter(t, o, "peer-a", "peer-b")
	ask := func() []api.AgentReport {
		t.Helper()
		var all api.Agents
		status, text := a.do(t, http.MethodGet, "/v1/agents", "")
		if err := json.Unmarshal([]byte(text), &all); err != nil || status != 200 || len(all.Agents) != 2 {
			t.Fatalf("%d %s", status, text)
		}
		return all.Agents
	}
	all := ask()
	if all[0].Name != "a" || !all[0].Reached || all[1].Name != "b" || all[1].ID != "peer-b" || all[1].Version != "2" || !all[1].Draining || len(all[1].Keys) != 1 || all[1].LagMS != 4 {
		t.Errorf("%+v", all)
	}
	for _, bad := range []string{"", "{}", `{"agents":[]}`, "nonsense"} {
		o.answer.Body = []byte(bad)
		if all := ask(); all[1].Reached || all[1].Name != "b" {
			t.Errorf("%q: %+v", bad, all[1])
		}
	}
	got := server.Forwarded(t.Context(), "peer-x", election.Call{Method: "GET", Path: "/v1/agents"})
	var own api.Agents
	if err := json.Unmarshal(got.Body, &own); err != nil || len(own.Agents) != 1 || own.Agents[0].Name != "a" {
		t.Errorf("to another agent: %s", got.Body)
	}
}
