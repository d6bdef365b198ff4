package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// words plays the other agents, each with its answer. Several goroutines call it.
type words struct {
	mu      sync.Mutex
	asked   map[election.PeerID]election.Call
	answers map[election.PeerID]election.CallAnswer // an agent without an answer is not connected
	hangs   election.PeerID
	ended   error                                   // why the agent that hangs was not waited for
	pass    func(election.Call) election.CallAnswer // makes the answers; nil: they are in answers
}

func (w *words) Call(ctx context.Context, to election.PeerID, c election.Call) (election.CallAnswer, error) {
	if to == w.hangs {
		<-ctx.Done()
		w.ended = ctx.Err()
		return election.CallAnswer{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked == nil {
		w.asked = map[election.PeerID]election.Call{}
	}
	w.asked[to] = c
	if w.pass != nil {
		return w.pass(c), nil
	}
	answer, ok := w.answers[to]
	if !ok {
		return answer, errors.New("not connected")
	}
	return answer, nil
}

var version = election.Version{Driver: 5, Counter: 9}

// ofVoters serves an agent while nobody leads payments. The given agents are the voters.
func ofVoters(t *testing.T, o *words, voters ...election.PeerID) (*agent, *serve.Server) {
	t.Helper()
	var server *serve.Server
	a := stand(t, func(c *serve.Config) {
		c.Other, c.Lease = o, 30*time.Second // so long that nothing ends by time
		server = serve.New(*c)
	})
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	roster := &election.Roster{Version: version}
	for _, v := range voters {
		roster.Voters = append(roster.Voters, election.Voter{Peer: v, Name: string(v)})
	}
	a.picture.Load().Status.Roster = roster
	return a, server
}

// has is the answer of a voter whose word in payments has the text, and was written in that term.
func has(counter uint64, term uint64, text string) election.CallAnswer {
	v := api.VoterWords{Version: api.RosterVersion{Driver: 5, Counter: counter}, Words: []api.VoterWord{}}
	if text != "" {
		v.Words = append(v.Words, api.VoterWord{Election: "other", Written: api.WordID{Term: 99}, Word: api.Word{Text: "not this one"}},
			api.VoterWord{Election: "payments", Written: api.WordID{Term: term, Seq: 1}, Word: api.Word{WordID: api.WordID{Term: 1, Seq: 1}, Text: text}})
	}
	body, _ := json.Marshal(v)
	return election.CallAnswer{Status: 200, Body: body}
}

// votes makes the agent a voter whose word in payments has the text.
func (a *agent) votes(v election.Version, term election.Term, text string) {
	a.on = func(in election.Input) (election.Reply, error) {
		if _, ok := in.(election.ReadWords); !ok {
			return election.Reply{Refusal: &election.Refusal{Why: election.DeniedNotLeader}}, nil
		}
		r := election.Reply{Words: election.Words{Version: v}}
		if text != "" {
			r.Words.Words = []election.NamedWord{{Election: "payments", Word: election.Word{Rank: election.WordRank{Term: term, Seq: 1}, ID: election.WordRank{Term: 1, Seq: 1}, Text: text}}}
		}
		return r, nil
	}
}

func (a *agent) word(t *testing.T, path string) (int, api.ElectionWord, string) {
	t.Helper()
	status, text := a.do(t, http.MethodGet, path, "")
	var w api.ElectionWord
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatalf("%d %s", status, text)
	}
	return status, w, text
}

func TestTheLeadersAgentAnswersWithTheWordThatItKnows(t *testing.T) {
	a := stand(t)
	a.on = func(in election.Input) (election.Reply, error) {
		if got, ok := in.(election.ReadWord); !ok || got.Election != "default" {
			t.Errorf("asked %+v", in)
		}
		return election.Reply{Word: election.Word{Rank: election.WordRank{Term: 7, Seq: 3}, ID: election.WordRank{Term: 2, Seq: 1}, Text: "x"}}, nil
	}
	if status, _, text := a.word(t, "/v1/elections/default/word"); status != 200 ||
		strings.TrimSpace(text) != `{"election":"default","word":{"term":2,"seq":1,"text":"x"},"authority":"lease"}` {
		t.Errorf("%d %s", status, text)
	}
	a.on = func(election.Input) (election.Reply, error) { return election.Reply{}, nil }
	if status, _, text := a.word(t, "/v1/elections/default/word"); status != 200 || strings.TrimSpace(text) != `{"election":"default","word":null,"authority":"lease"}` {
		t.Errorf("without a word: %d %s", status, text)
	}
	p := *a.picture.Load()
	status := *p.Status
	status.Quorum.Enabled = false
	p.Status = &status
	a.picture.Store(&p)
	if status, _, text := a.word(t, "/v1/elections/default/word"); status != 503 || !strings.Contains(text, "no_quorum") {
		t.Errorf("without a quorum: %d %s", status, text)
	}
	if status, text := a.do(t, http.MethodGet, "/v1/elections/a,b/word", ""); status != 400 {
		t.Errorf("no name: %d %s", status, text)
	}
}

func TestTheWordOfALeaderElsewhereIsThatOfItsAgent(t *testing.T) {
	o := &words{answers: map[election.PeerID]election.CallAnswer{
		"peer-b": {Status: 200, Body: []byte(`{"election":"default","word":{"term":2,"seq":1,"text":"x"},"authority":"lease"}`)},
	}}
	a, server := ofVoters(t, o, "peer-a", "peer-b", "peer-c")
	a.votes(version, 1, "mine")
	roster := a.picture.Load().Status.Roster
	leads := func() {
		a.shows(elector.Following, election.Holder{Peer: "peer-b", Lineage: 2}, 7, a.clock().Add(time.Second))
		a.picture.Load().Status.Roster = roster
	}
	leads()
	if status, w, text := a.word(t, "/v1/elections/default/word"); status != 200 || w.Word == nil || w.Word.Text != "x" || w.Authority != "lease" {
		t.Errorf("%d %s", status, text)
	}
	if c := o.asked["peer-b"]; len(o.asked) != 1 || c.Method != "GET" || c.Path != "/v1/elections/default/word" {
		t.Errorf("asked %+v", o.asked)
	}
	// A forwarded question is not forwarded again, and the voters are not asked for another agent.
	clear(o.asked)
	if got := server.Forwarded(t.Context(), "peer-c", election.Call{Method: "GET", Path: "/v1/elections/default/word"}); got.Status != 409 || len(o.asked) != 0 {
		t.Errorf("passed on twice: %d %s, asked %+v", got.Status, got.Body, o.asked)
	}
	// If the leader's agent has just lost the lead, or answers about another election, the voters are asked.
	for _, bad := range []string{`{"error":{"code":"not_leader","message":"it does not lead"}}`, `{"election":"other","word":null,"authority":"lease"}`} {
		leads()
		answer := election.CallAnswer{Status: 200, Body: []byte(bad)}
		if strings.Contains(bad, "error") {
			answer.Status = 409
		}
		o.answers = map[election.PeerID]election.CallAnswer{"peer-b": answer, "peer-c": has(9, 4, "y")}
		if status, w, text := a.word(t, "/v1/elections/default/word"); status != 200 || w.Authority != "quorum" {
			t.Errorf("%s: %d %s", bad, status, text)
		}
	}
}

func TestW5WithoutALeaderTheWordIsTheNewestOfAMajorityAtOneVersion(t *testing.T) {
	refused := election.CallAnswer{Status: 403, Body: []byte(`{"error":{"code":"not_voter","message":"it does not vote"}}`)}
	for _, test := range []struct {
		name string
		own  func(*agent)
		b, c *election.CallAnswer
		want string // text; "none": no word; "no_quorum"
	}{
		{"all have it", func(a *agent) { a.votes(version, 3, "x") }, new(has(9, 3, "x")), new(has(9, 3, "x")), "x"},
		{"b's is newer", func(a *agent) { a.votes(version, 3, "x") }, new(has(9, 4, "y")), nil, "y"},
		{"this agent's is newer", func(a *agent) { a.votes(version, 3, "x") }, nil, new(has(9, 2, "w")), "x"},
		{"none of two has one", func(a *agent) { a.votes(version, 0, "") }, nil, new(has(9, 0, "")), "none"},
		{"one of two has one", func(a *agent) { a.votes(version, 0, "") }, nil, new(has(9, 2, "w")), "w"},
		{"this agent alone", func(a *agent) { a.votes(version, 3, "x") }, nil, nil, "no_quorum"},
		{"b alone", func(a *agent) { a.votes(election.Version{}, 0, "") }, new(has(9, 3, "x")), nil, "no_quorum"},
		{"b has another version", func(a *agent) { a.votes(version, 3, "x") }, new(has(8, 4, "y")), nil, "no_quorum"},
		{"b's newer word of another version", func(a *agent) { a.votes(version, 3, "x") }, new(has(10, 4, "y")), new(has(9, 2, "w")), "x"},
		{"this agent's disk is behind its roster", func(a *agent) { a.votes(election.Version{Driver: 5, Counter: 8}, 4, "z") }, new(has(9, 3, "x")), nil, "no_quorum"},
		{"b does not vote", func(a *agent) { a.votes(version, 3, "x") }, &refused, nil, "no_quorum"},
		{"an observer asks", func(a *agent) {
			a.votes(election.Version{}, 0, "")
			r := *a.picture.Load().Status.Roster
			r.Voters = slices.Clone(r.Voters)
			r.Voters[0].Peer = "peer-d"
			a.picture.Load().Status.Roster = &r
		}, new(has(9, 3, "x")), new(has(9, 4, "y")), "y"},
		{"no roster yet", func(a *agent) { a.picture.Load().Status.Roster = nil }, nil, nil, "no_quorum"},
		{"one of each half of a marked change", func(a *agent) {
			a.votes(version, 3, "x")
			r := *a.picture.Load().Status.Roster
			r.Next, r.Committed = []election.Voter{{Peer: "peer-d"}, {Peer: "peer-e"}}, true
			a.picture.Load().Status.Roster = &r
		}, new(has(9, 3, "x")), new(has(9, 4, "y")), "no_quorum"},
	} {
		o := &words{answers: map[election.PeerID]election.CallAnswer{}}
		for peer, answer := range map[election.PeerID]*election.CallAnswer{"peer-b": test.b, "peer-c": test.c} {
			if answer != nil {
				o.answers[peer] = *answer
			}
		}
		a, _ := ofVoters(t, o, "peer-a", "peer-b", "peer-c")
		test.own(a)
		status, w, text := a.word(t, "/v1/elections/payments/word")
		got := "none"
		switch {
		case status != 200:
			if got = text; strings.Contains(text, `"code":"no_quorum"`) && status == 503 {
				got = "no_quorum"
			}
		case w.Authority != "quorum" || w.Election != "payments":
			got = text
		case w.Word != nil:
			got = w.Word.Text
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		for peer, c := range o.asked {
			if c.Path != "/v1/words/payments" || c.Method != "GET" {
				t.Errorf("%s: %s was asked %+v", test.name, peer, c)
			}
		}
	}
}

func TestAVoterThatHangsDoesNotKeepAMajoritysAnswerBack(t *testing.T) {
	o := &words{answers: map[election.PeerID]election.CallAnswer{"peer-b": has(9, 3, "x")}, hangs: "peer-c"}
	a, _ := ofVoters(t, o, "peer-a", "peer-b", "peer-c")
	a.votes(version, 3, "x")
	if status, w, text := a.word(t, "/v1/elections/payments/word"); status != 200 || w.Word == nil || !errors.Is(o.ended, context.Canceled) {
		t.Errorf("%d %s; the third one: %v", status, text, o.ended)
	}
}

func TestAVoterAnswersOtherAgentsWithWhatItHas(t *testing.T) {
	a, server := ofVoters(t, &words{}, "peer-a", "peer-b")
	a.votes(version, 3, "x")
	ask := election.Call{Method: "GET", Path: "/v1/words/payments"}
	if got := server.Forwarded(t.Context(), "peer-x", ask); got.Status != 200 || strings.TrimSpace(string(got.Body)) !=
		`{"version":{"driver":5,"counter":9},"words":[{"election":"payments","term":1,"seq":1,"text":"x","written":{"term":3,"seq":1}}]}` {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	a.votes(election.Version{}, 0, "")
	if got := server.Forwarded(t.Context(), "peer-x", ask); got.Status == 200 || !strings.Contains(string(got.Body), "not_voter") {
		t.Errorf("as an observer: %d %s", got.Status, got.Body)
	}
	if status, text := a.do(t, http.MethodGet, "/v1/words/payments", ""); status != 404 {
		t.Errorf("on the socket: %d %s", status, text)
	}
}

func TestTheListOfJobsIsTheVotersOwn(t *testing.T) {
	o := &words{}
	a, server := ofVoters(t, o, "peer-a", "peer-b")
	read := func(status int, text string) []api.Job {
		t.Helper()
		var all api.Jobs
		if err := json.Unmarshal([]byte(text), &all); err != nil || status != 200 || all.Jobs == nil {
			t.Fatalf("%d %s", status, text)
		}
		return all.Jobs
	}
	if all := read(a.do(t, http.MethodGet, "/v1/jobs", "")); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	p := a.picture.Load()
	runs := &api.JobRun{Occurrence: "1"}
	p.Jobs = []api.Job{{Election: "default", Running: runs}, {Election: "migrate", Running: runs}, {Election: "plain"}}
	p.Status.Contests = []*elector.ContestStatus{{Election: "default", Leader: election.Holder{Peer: "peer-b"}, ValidUntil: election.Never}}
	if all := read(a.do(t, http.MethodGet, "/v1/jobs", "")); len(all) != 3 || !all[0].Running.Held || all[1].Running.Held || all[2].Running != nil || runs.Held {
		t.Errorf("%+v", all)
	}
	// An observer asks the voters that it reaches. It does so only for its own callers, not for another agent.
	p.Status.Roster, p.Connected = &election.Roster{Version: version, Voters: []election.Voter{{Peer: "peer-b", Name: "b"}}}, map[election.PeerID]bool{"peer-b": true}
	o.answers = map[election.PeerID]election.CallAnswer{"peer-b": {Status: 200, Body: []byte(`{"jobs":[{"election":"of-b","kind":"key"}]}`)}}
	if all := read(a.do(t, http.MethodGet, "/v1/jobs", "")); len(all) != 1 || all[0].Election != "of-b" {
		t.Errorf("as an observer: %+v", all)
	}
	clear(o.asked)
	if got := server.Forwarded(t.Context(), "peer-x", election.Call{Method: "GET", Path: "/v1/jobs"}); got.Status == 200 || len(o.asked) > 0 {
		t.Errorf("asked by another agent: %d %s", got.Status, got.Body)
	}
	o.answers = nil
	if status, text := a.do(t, http.MethodGet, "/v1/jobs", ""); status == 200 || !strings.Contains(text, "not_voter") {
		t.Errorf("no voter answers: %d %s", status, text)
	}
}

// A cluster may have 1,023 jobs, but an answer to another agent has at most 64 KiB.
func TestAnObserverListsAsManyJobsAsAVoter(t *testing.T) {
	b, voter := ofVoters(t, &words{}, "peer-a")
	p, full := b.picture.Load(), strings.Repeat("x", 1000)
	for i := range 1023 {
		p.Jobs = append(p.Jobs, api.Job{Election: fmt.Sprintf("job-%04d", i), Spec: full, Done: strings.Repeat("<", i%3*500)})
	}
	o := &words{pass: func(c election.Call) election.CallAnswer { return voter.Forwarded(t.Context(), "peer-a", c) }}
	a, _ := ofVoters(t, o, "peer-b")
	a.picture.Load().Connected = map[election.PeerID]bool{"peer-b": true}
	_, own := b.do(t, http.MethodGet, "/v1/jobs", "")
	if status, all := a.do(t, http.MethodGet, "/v1/jobs", ""); status != 200 || all != own || strings.Count(all, full) != 1023 {
		t.Errorf("%d %.200s of %d bytes, %d are listed there", status, all, len(all), len(own))
	}
}

type anyCampaigns = serve.Campaigns

// programs gives a registry the methods that writing a word needs.
type programs struct {
	anyCampaigns
	r *actors.Registry
}

func (p programs) Acts(id string, term election.Term, authorized func(uint32) bool) (election.Name, error) {
	return p.r.Acts(id, term, authorized)
}

func TestOnlyTheProgramThatLeadsWritesTheWord(t *testing.T) {
	n := 0
	r := actors.New(actors.Config{Settings: actors.Settings{Priority: 100}, NewID: func() string { n++; return fmt.Sprint("k", n) }})
	a := stand(t, func(c *serve.Config) { c.Campaigns = programs{r: r} })
	for range 2 {
		if _, err := r.Stand(0, actors.Request{Election: "payments", UID: uint32(os.Geteuid())}); err != nil {
			t.Fatal(err)
		}
	}
	r.Lead(0, "payments", 4, 1000, nil, nil)
	var asked []election.Input
	reply := election.Reply{Word: election.Word{ID: election.WordRank{Term: 4, Seq: 2}}}
	a.on = func(in election.Input) (election.Reply, error) { asked = append(asked, in); return reply, nil }
	const body = `{"term":4,"if":{"term":3,"seq":1},"text":"paid"}`
	status, text := a.do(t, "POST", "/v1/campaigns/k1/word", body)
	want := election.WriteWord{Election: "payments", Term: 4, If: election.WordRank{Term: 3, Seq: 1}, Text: "paid", Request: 1}
	if status != 200 || strings.TrimSpace(text) != `{"term":4,"seq":2}` || len(asked) != 1 || asked[0] != want {
		t.Errorf("%d %s, asked %+v", status, text, asked)
	}
	asked = nil
	for path, test := range map[string]struct {
		body, code string
		status     int
	}{
		"/v1/campaigns/k9/word":   {body, "not_found", 404},
		"/v1/campaigns/k2/word":   {body, "not_leader", 409},
		"/v1/campaigns/k1/word":   {strings.Replace(body, `"term":4`, `"term":3`, 1), "not_leader", 409},
		"/v1/campaigns/k1/word?a": {`{"text":"paid"}`, "not_leader", 409},
		"/v1/campaigns/k1/word?b": {`{"term":"4"}`, "bad_request", 400},
	} {
		if status, text := a.do(t, "POST", path, test.body); status != test.status || !strings.Contains(text, `"code":"`+test.code+`"`) {
			t.Errorf("%s %s: %d %s", path, test.body, status, text)
		}
	}
	if len(asked) > 0 {
		t.Errorf("asked %+v", asked)
	}
	// If the voters can't write to their disks, the lease goes on, but the write is not confirmed in time.
	a.on = func(election.Input) (election.Reply, error) { return election.Reply{}, context.DeadlineExceeded }
	if status, text := a.do(t, "POST", "/v1/campaigns/k1/word", body); status != 409 || !strings.Contains(text, `"code":"not_confirmed"`) {
		t.Errorf("no answer in time: %d %s", status, text)
	}
	a.on = func(in election.Input) (election.Reply, error) { return reply, nil }
	reply = election.Reply{Refusal: &election.Refusal{Why: election.DeniedWordChanged, Election: "payments"},
		Word: election.Word{Rank: election.WordRank{Term: 4, Seq: 9}, ID: election.WordRank{Term: 2, Seq: 1}, Text: "theirs"}}
	if status, text := a.do(t, "POST", "/v1/campaigns/k1/word", body); status != 409 || !strings.Contains(text, `"code":"word_changed"`) ||
		!strings.Contains(text, `"word":{"term":2,"seq":1,"text":"theirs"}`) {
		t.Errorf("another word: %d %s", status, text)
	}
}
