package serve_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// driller serves a fake agent a that leads default in term 7. b is a member, and all three voters are reachable.
func driller(t *testing.T, o *other, change ...func(*serve.Config)) (*agent, *book, *serve.Server) {
	t.Helper()
	b := &book{}
	var server *serve.Server
	a := stand(t, append(change, func(c *serve.Config) {
		c.Other, c.Keeper, c.Enter, c.Logger, c.Run = o, true, b.enter, b.logger(), 1
		c.History = func(string, int) []api.Transition {
			b.mu.Lock()
			defer b.mu.Unlock()
			return slices.Clone(b.entries)
		}
		server = serve.New(*c)
	})...)
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	a.redundant(nil)
	return a, b, server
}

// redundant makes all three voters reachable, and then changes the picture.
func (a *agent) redundant(change func(*serve.Picture)) {
	p := *a.picture.Load()
	status := *p.Status
	status.Quorum = elector.QuorumStatus{Enabled: true, Voters: 3, Needed: 2, Reachable: 3, Exists: true}
	status.Roster = &election.Roster{Voters: []election.Voter{{Name: "a", Peer: "peer-a"}, {Name: "b", Peer: "peer-b"}}}
	status.Contests = slices.Clone(status.Contests)
	p.Status = &status
	if change != nil {
		change(&p)
	}
	a.picture.Store(&p)
}

func (a *agent) endedBy(t *testing.T) string {
	t.Helper()
	select {
	case how := <-a.ended:
		return how
	case <-time.After(patience):
		t.Fatal("the agent did not end itself")
		return ""
	}
}

const drillPath = "/v1/elections/default/drill"

func TestADrillOfTheLeaderIsEnteredAndDone(t *testing.T) {
	a, b, _ := driller(t, &other{})
	status, text := a.do(t, "POST", drillPath, `{"how":"stop","term":7}`)
	if status != 200 || !strings.Contains(text, `"done":true,"message":"stop in 50ms"`) {
		t.Fatalf("stop: %d %s", status, text)
	}
	if got := a.endedBy(t); got != "stop" {
		t.Errorf("it ended by %s", got)
	}
	if entries, _ := b.taken(); len(entries) != 1 || !strings.HasPrefix(entries[0].Reason, "drill how=stop term=7, asked by ") {
		t.Errorf("stop: entered %+v", entries)
	}
	a, b, _ = driller(t, &other{})
	a.on = a.succeeds("b", 8)
	status, text = a.do(t, "POST", drillPath, `{"how":"transfer","to":"b","term":7}`)
	if status != 200 || !strings.Contains(text, `"done":true,"message":"","leader":{"name":"b"`) {
		t.Errorf("transfer: %d %s", status, text)
	}
	if entries, _ := b.taken(); len(entries) != 1 {
		t.Errorf("entered %+v", entries)
	}
}

func TestADrillIsRefusedWhereItCouldDoHarm(t *testing.T) {
	contest := func(p *serve.Picture) *elector.ContestStatus {
		c := *p.Status.Contests[0]
		p.Status.Contests[0] = &c
		return &c
	}
	for name, c := range map[string]struct {
		body, code, text string
		change           func(*serve.Picture)
	}{
		"no quorum":   {`{"how":"stop","term":7}`, "no_quorum", "a majority of the voters", func(p *serve.Picture) { p.Status.Quorum.Exists = false }},
		"at the edge": {`{"how":"transfer","to":"b","term":7}`, "no_quorum", "one more loss would cost the quorum: 2 of 3", func(p *serve.Picture) { p.Status.Quorum.Edge, p.Status.Quorum.Reachable = true, 2 }},
		"joint":       {`{"how":"stop","term":7}`, "busy", "doyen voters", func(p *serve.Picture) { p.Status.Roster.Next = p.Status.Roster.Voters }},
		"an election": {`{"how":"stop","term":7}`, "busy", "nobody leads payments now", func(p *serve.Picture) {
			p.Status.Contests = append(p.Status.Contests, &elector.ContestStatus{Election: "payments", State: elector.Electing})
		}},
		"another term": {`{"how":"stop","term":6}`, "busy", "leads in term 7 and not in term 6", nil},
		"no leader":    {`{"how":"stop","term":7}`, "not_leader", "does not lead default", func(p *serve.Picture) { contest(p).Leader = election.Holder{} }},
		"no target":    {`{"how":"transfer","to":"z","term":7}`, "bad_request", "must name another live agent", nil},
		"to itself":    {`{"how":"transfer","to":"a","term":7}`, "bad_request", "must name another live agent", nil},
		"how":          {`{"how":"kill","term":7}`, "bad_request", "an agent is killed on its own host", nil},
		"all drained": {`{"how":"stop","term":7}`, "no_candidate", "no other agent can lead default", func(p *serve.Picture) {
			contest(p).Candidates = []election.PeerID{"peer-a"}
			view := *p.View
			view.Members = slices.Clone(view.Members)
			view.Members[1].Draining = true
			p.View = &view
		}},
		"another one that nobody else can lead": {`{"how":"stop","term":7}`, "no_candidate", "leads payments too", func(p *serve.Picture) {
			c := *p.Status.Contests[0]
			c.Election, c.Candidates, c.Ranks = "payments", []election.PeerID{"peer-a"}, c.Ranks[:1]
			p.Status.Contests = append(p.Status.Contests, &c)
		}},
	} {
		a, b, _ := driller(t, &other{})
		a.redundant(c.change)
		a.on = func(election.Input) (election.Reply, error) {
			t.Errorf("%s: the elector was asked", name)
			return election.Reply{}, nil
		}
		status, text := a.do(t, "POST", drillPath, c.body)
		if status < 400 || !strings.Contains(text, `"code":"`+c.code+`"`) || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %s", name, status, text)
		}
		if entries, _ := b.taken(); len(entries) != 0 || len(a.ended) != 0 {
			t.Errorf("%s: entered %+v", name, entries)
		}
	}
}

func TestDrillsAreAMinuteApart(t *testing.T) {
	a, b, _ := driller(t, &other{})
	drill := func() (int, string) { return a.do(t, "POST", drillPath, `{"how":"stop","term":7}`) }
	if status, text := drill(); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	a.endedBy(t)
	later := func(d time.Duration) {
		a.now.Add(int64(d))
		a.shows(elector.Leading, self, 7, a.clock().Add(time.Second))
		a.redundant(nil)
	}
	later(59 * time.Second)
	if status, text := drill(); status != 503 || !strings.Contains(text, "there was a drill 59s ago") {
		t.Errorf("%d %s", status, text)
	}
	if _, text := a.do(t, "GET", drillPath, ""); !strings.Contains(text, `"refused":"there was a drill 59s ago`) {
		t.Errorf("beforehand: %s", text)
	}
	later(time.Second)
	if status, text := drill(); status != 200 {
		t.Errorf("after a minute: %d %s", status, text)
	}
	a.endedBy(t)
	if entries, _ := b.taken(); len(entries) != 2 {
		t.Errorf("entered %+v", entries)
	}
}

func TestADrillIsPassedOnToTheLeader(t *testing.T) {
	o := &other{answer: election.CallAnswer{Status: 200, Body: []byte(`{"done":true,"message":"stop in 50ms","waited_ms":0}`)}}
	a, b, server := driller(t, o)
	a.shows(elector.Following, election.Holder{Peer: "peer-b", Lineage: 2}, 7, a.clock().Add(time.Second))
	a.redundant(nil)
	status, text := a.do(t, "POST", drillPath, `{"how":"stop","term":7}`)
	if status != 200 || !strings.Contains(text, "agent b: stop in 50ms") || len(o.asked) != 1 || o.to != "peer-b" ||
		o.asked[0].Path != drillPath || string(o.asked[0].Body) != `{"how":"stop","term":7}` || len(a.ended) != 0 {
		t.Errorf("%d %s, asked %+v", status, text, o.asked)
	}
	if entries, _ := b.taken(); len(entries) != 1 {
		t.Errorf("entered %+v", entries)
	}
	o.answer = election.CallAnswer{Status: 409, Body: []byte(`{"error":{"code":"no_candidate","message":"nobody else"}}`)}
	if status, text := a.do(t, "POST", drillPath, `{"how":"stop","term":7}`); status != 409 || !strings.Contains(text, "agent b: nobody else") {
		t.Errorf("a refusal: %d %s", status, text)
	}
	if entries, _ := b.taken(); len(entries) != 0 {
		t.Errorf("what was refused counts as a drill: %+v", entries)
	}
	// The leader accepts a drill from voters only.
	a.shows(elector.Leading, self, 7, a.clock().Add(time.Second))
	a.redundant(nil)
	call := election.Call{Method: "POST", Path: drillPath, Body: []byte(`{"how":"stop","term":7}`), Caller: "user pay (uid 1000, pid 7, doyen)"}
	for _, method := range []string{"POST", "GET"} {
		forged := call
		forged.Method = method
		if got := server.Forwarded(t.Context(), "peer-x", forged); got.Status != 403 {
			t.Errorf("a forged %s: %d %s", method, got.Status, got.Body)
		}
	}
	if entries, _ := b.taken(); len(entries) != 0 || len(a.ended) != 0 {
		t.Errorf("a forged drill: %+v", entries)
	}
	if got := server.Forwarded(t.Context(), "peer-b", call); got.Status != 200 {
		t.Errorf("a voter's: %d %s", got.Status, got.Body)
	}
	if got := a.endedBy(t); got != "stop" {
		t.Errorf("it ended by %s", got)
	}
	if entries, _ := b.taken(); len(entries) != 1 || entries[0].By.UID != 1000 || entries[0].By.Host != "b" {
		t.Errorf("entered %+v", entries)
	}
}

func TestEveryAgentAnswersForItselfBeforeADrill(t *testing.T) {
	o := &other{answer: election.CallAnswer{Status: 200, Body: []byte(`{"agents":[{"name":"forged","id":"x","reached":true,"boot_id":"bb","keeper":false,"refused":"no","changes":[]}]}`)}}
	a, b, server := driller(t, o)
	b.enter(api.Transition{Election: "default", Type: api.ChangeLeader, Evidence: "long"})
	ask := func() []api.DrillView {
		t.Helper()
		var all api.Drills
		status, text := a.do(t, "GET", drillPath, "")
		if err := json.Unmarshal([]byte(text), &all); err != nil || status != 200 || len(all.Agents) != 2 {
			t.Fatalf("%d %s", status, text)
		}
		return all.Agents
	}
	all := ask()
	if own := all[0]; own.Name != "a" || !own.Reached || !own.Keeper || !own.Record || own.Refused != "" || len(own.Changes) != 1 || own.Changes[0].Evidence != "" {
		t.Errorf("%+v", own)
	}
	if b := all[1]; b.Name != "b" || b.ID != "peer-b" || !b.Reached || b.BootID != "bb" || b.Refused != "no" {
		t.Errorf("%+v", b)
	}
	o.answer = election.CallAnswer{Status: 404} // as an agent of an older version answers
	if all := ask(); all[1].Reached || all[1].Name != "b" {
		t.Errorf("%+v", all[1])
	}
	got := server.Forwarded(t.Context(), "peer-b", election.Call{Method: "GET", Path: drillPath})
	var own api.Drills
	if err := json.Unmarshal(got.Body, &own); err != nil || len(own.Agents) != 1 || own.Agents[0].Name != "a" {
		t.Errorf("to another agent: %s", got.Body)
	}
}

// A question about a drill counts as a question to every agent.
func TestQuestionsAboutADrillAreBounded(t *testing.T) {
	o := &other{}
	a, _, _ := driller(t, o)
	refused := 0
	for range 200 {
		if status, text := a.do(t, "GET", drillPath, ""); status != 200 {
			refused++
			if status != 503 || !strings.Contains(text, "questions a second for other agents") {
				t.Fatalf("%d %s", status, text)
			}
		}
	}
	if refused == 0 || len(o.asked) != 200-refused {
		t.Errorf("%d of 200 refused, %d calls at b", refused, len(o.asked))
	}
}
