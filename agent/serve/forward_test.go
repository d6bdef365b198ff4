package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/forward"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// other plays all other agents: it keeps the calls, and answers them.
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

// voter serves a fake agent a while b leads. The given agents are the voters.
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
	// The call names the term that the caller saw, since the leader may carry the call out late.
	for path, body := range map[string]string{
		"/v1/elections/default/resign": `{"term":7}`, "/v1/elections/default/transfer": `{"to":"a","term":7}`, "/v1/drain": `{"on":true,"agent":"b"}`,
	} {
		o.asked = nil
		status, text := a.do(t, http.MethodPost, path, strings.Replace(strings.Replace(body, `,"term":7`, "", 1), `"term":7`, "", 1))
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
	b := &book{}
	server.Enter, server.Logger = b.enter, b.logger()
	drained, reached := 0, 0
	a.on = func(in election.Input) (election.Reply, error) {
		reached++
		if _, ok := in.(election.Drain); ok {
			drained++
		}
		return election.Reply{}, nil
	}
	drain := election.Call{Method: "POST", Path: "/v1/drain", Body: []byte(`{"on":true}`), Caller: "user root"}
	for path, body := range map[string]string{
		"/v1/elections/default/resign": `{}`, "/v1/elections/default/transfer": `{"to":"b"}`, "/v1/elections/default/allow": `{"agents":["b"]}`,
		"/v1/voters": `{"remove":"b"}`, "/v1/settings": `{"lease_ms":2000}`, "/v1/keys": `{"remove":"x"}`,
	} {
		if got := server.Forwarded(t.Context(), "peer-x", election.Call{Method: "POST", Path: path, Body: []byte(body), Caller: "user root"}); got.Status != 403 || reached != 0 {
			t.Errorf("a forged forward to %s: %d %s", path, got.Status, got.Body)
		}
	}
	if got := server.Forwarded(t.Context(), "peer-x", drain); got.Status != 403 || !strings.Contains(string(got.Body), "only from agents that are voters") || drained != 0 {
		t.Errorf("a forged forward: %d %s", got.Status, got.Body)
	}
	if entries, log := b.taken(); len(entries) != 0 || log != "" {
		t.Errorf("a forged forward entered %+v and logged %s", entries, log)
	}
	if got := server.Forwarded(t.Context(), "peer-b", drain); got.Status != 200 || drained != 1 {
		t.Errorf("a voter's: %d %s", got.Status, got.Body)
	}
	if entries, log := b.taken(); len(entries) != 1 || entries[0].Reason != "drain on=true, asked by root on b" || entries[0].By.Host != "b" ||
		entries[0].By.UID != 4294967295 || !strings.Contains(log, "host=b") || strings.Count(log, "\n") != 1 {
		t.Errorf("entered %+v and logged %s", entries, log) // an older version does not send the caller's numbers
	}
	// A forwarded call is not forwarded again: b leads, but a does not call b.
	a.on = func(election.Input) (election.Reply, error) {
		return election.Reply{Refusal: &election.Refusal{Why: election.DeniedNotLeader}}, nil
	}
	if got := server.Forwarded(t.Context(), "peer-b", election.Call{Method: "POST", Path: "/v1/elections/default/resign"}); got.Status != 409 || len(o.asked) != 0 {
		t.Errorf("forwarded twice: %d %s, asked %+v", got.Status, got.Body, o.asked)
	}
	for path, want := range map[string]uint64{
		"/v1/leave": 404, "/v1/restart": 404, "/v1/reload": 404, "/v1/elections/default/campaign": 404, "/metrics": 404,
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

// A voter that can't change the roster itself asks another voter. If all voters would refuse for the same reason,
// it asks none.
func TestChangesOfTheRosterGoToAVoterThatCanMakeThem(t *testing.T) {
	const roster, settings = `{"cluster":"x","voters":[{"name":"b"}]}`, `{"algorithm":"ring","lease_ms":2000}`
	for _, c := range []struct {
		path, body, answer string
		why                election.Denial
		asked              bool
	}{
		{"/v1/voters", `{"remove":"c"}`, roster, election.DeniedBarred, true},
		{"/v1/voters", `{"remove":"c"}`, roster, election.DeniedNoMajority, true},
		{"/v1/voters", `{"cancel":true}`, roster, election.DeniedNoChange, true},
		{"/v1/settings", `{"algorithm":"ring"}`, settings, election.DeniedNotConnected, true},
		{"/v1/elections/default/allow", `{"agents":["a"]}`, settings, election.DeniedBarred, true},
		{"/v1/voters", `{"remove":"c"}`, "", election.DeniedOtherChange, false},
		{"/v1/voters", `{"remove":"c"}`, "", election.DeniedLastVoter, false},
		{"/v1/voters", `{"restore":true}`, "", election.DeniedBarred, false},
		{"/v1/settings", `{"lease_ms":2000}`, "", election.DeniedHeartbeat, false},
		{"/v1/elections/default/allow", `{"agents":["a"]}`, "", election.DeniedNotVoter, false},
	} {
		o := &other{answer: election.CallAnswer{Status: 200, Body: []byte(c.answer)}}
		a, server := voter(t, o, "peer-a", "peer-b", "peer-c")
		a.on = func(election.Input) (election.Reply, error) {
			return election.Reply{Refusal: &election.Refusal{Why: c.why, Agent: "x", Election: "default"}}, nil
		}
		status, text := a.do(t, http.MethodPost, c.path, c.body)
		if (status == 200) != c.asked || (len(o.asked) == 1) != c.asked {
			t.Errorf("%s %s, %s: %d %s, asked %+v", c.path, c.body, c.why, status, text, o.asked)
			continue
		}
		if c.asked && (o.to != "peer-b" || o.asked[0].Path != c.path || string(o.asked[0].Body) != c.body) {
			t.Errorf("%s: asked %s %+v", c.path, o.to, o.asked)
		}
		// A forwarded call is not forwarded again. A call from an agent that is not a voter is refused.
		o.asked = nil
		for from, want := range map[election.PeerID]uint64{"peer-b": 0, "peer-x": 403} {
			got := server.Forwarded(t.Context(), from, election.Call{Method: "POST", Path: c.path, Body: []byte(c.body)})
			if got.Status < 400 || want != 0 && got.Status != want || len(o.asked) > 0 {
				t.Errorf("%s from %s: %d %s, asked %+v", c.path, from, got.Status, got.Body, o.asked)
			}
		}
		if o.err = context.DeadlineExceeded; c.asked {
			if status, text := a.do(t, http.MethodPost, c.path, c.body); status != 503 || !strings.Contains(text, "may have done it") {
				t.Errorf("no answer: %d %s", status, text)
			}
		}
		if o.err, o.asked = forward.ErrNotSent, nil; c.asked {
			if status, text := a.do(t, http.MethodPost, c.path, c.body); status < 400 || strings.Contains(text, "may have done it") {
				t.Errorf("nobody can be asked: %d %s", status, text)
			}
		}
		if o.err, o.answer = nil, (election.CallAnswer{Status: 404, Body: []byte(`{"error":{"code":"not_found","message":"nothing there"}}`)}); c.asked {
			if status, text := a.do(t, http.MethodPost, c.path, c.body); status < 400 || !strings.Contains(text, "agent b: nothing there") {
				t.Errorf("an older agent: %d %s", status, text)
			}
		}
		if o.answer = (election.CallAnswer{Status: 503, Body: []byte(`{"error":{"code":"busy","message":"another change"}}`)}); c.asked {
			if status, text := a.do(t, http.MethodPost, c.path, c.body); status != 503 || !strings.Contains(text, `"busy","message":"agent b: another change"`) {
				t.Errorf("a refusal for good: %d %s", status, text)
			}
		}
	}
}
