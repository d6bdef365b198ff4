package runner

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// A reason is reported once, until another reason comes or the host was a candidate in between.
func TestWhatKeepsItFromStandingIsToldOnce(t *testing.T) {
	lines := make(chan string, 8)
	r := &runner{Config: Config{Election: "payments", lines: lines}, met: true}
	away, busy := errors.New("no socket exists"), errors.New("too many campaigns")
	for _, err := range []error{away, away, busy, busy, away} {
		r.take(nil, err)
	}
	r.complaint = "" // the host was a candidate
	r.take(nil, away)
	close(lines)
	want := []string{
		"can't be a candidate in payments: no socket exists; trying again",
		"can't be a candidate in payments: too many campaigns; trying again",
		"can't be a candidate in payments: no socket exists; trying again",
		"can't be a candidate in payments: no socket exists; trying again",
	}
	if got := slices.Collect(func(yield func(string) bool) {
		for line := range lines {
			if !yield(line) {
				return
			}
		}
	}); !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

// A reason for waiting is reported once, and only for the present candidacy while it waits.
func TestWhyItWaitsIsToldOnce(t *testing.T) {
	lines := make(chan string, 8)
	own := new(client.Candidacy)
	r := &runner{Config: Config{lines: lines}, candidacy: own}
	r.explain(own, "")
	r.explain(own, "drained")
	r.explain(own, "drained")
	r.explain(own, "no quorum")
	r.explain(new(client.Candidacy), "of an earlier candidacy")
	r.leading = true
	r.explain(own, "drained")
	close(lines)
	if got := []string{<-lines, <-lines, <-lines}; !slices.Equal(got, []string{"drained", "no quorum", ""}) {
		t.Errorf("said %q", got)
	}
}

// A campaign with a higher priority than the agent's own only waits until it takes over.
func TestAHigherPriorityTakesOverFromTheAgentItself(t *testing.T) {
	members := []api.Member{{ID: "B", Priority: 1}, {ID: "A", Priority: 100}}
	for _, test := range []struct {
		priority *int
		preempt  bool
		want     bool
	}{{nil, true, false}, {new(100), true, false}, {new(101), true, true}, {new(101), false, false}} {
		if got := takesOver(test.priority, api.Agent{ID: "A", Preempt: test.preempt}, members); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}

func TestWhatAProgramWaitsFor(t *testing.T) {
	leads := api.Election{Election: "default", IsLeader: true}
	for _, test := range []struct {
		agent     api.Agent
		e         api.Election
		campaigns []api.Campaign
		rights    []api.Right
		says      string
	}{
		{says: ""}, // another agent leads, or an election is in progress
		{agent: api.Agent{Draining: true}, says: "this agent is drained"},
		{agent: api.Agent{Quorum: api.Quorum{Enabled: true, State: api.QuorumLost}}, says: "no quorum: this agent does not know the voters yet"},
		{agent: api.Agent{Quorum: api.Quorum{Enabled: true, State: api.QuorumLost, Voters: 3, Needed: 2, Reachable: 1}}, says: "no quorum: this agent reaches 1 of 3 voters"},
		{agent: api.Agent{Quorum: api.Quorum{State: api.QuorumLost}}}, // without a quorum nothing is missing
		{e: leads, says: "this host's agent is a candidate in default too"},
		{e: leads, campaigns: []api.Campaign{{Election: "default", Term: 7}}}, // a program leads
		{e: leads, campaigns: []api.Campaign{{Election: "other", Term: 7}, {Election: "default"}}, says: "this host's agent is"},
		{agent: api.Agent{Name: "c"}, e: api.Election{Election: "payments"}, rights: []api.Right{{Election: "payments"}}, says: "the cluster's rights do not let this host lead payments"},
		{agent: api.Agent{Name: "c"}, e: api.Election{Election: "payments"}, rights: []api.Right{{Election: "other"}}},
		{agent: api.Agent{Name: "c"}, e: api.Election{Election: "payments", Candidates: []string{"a", "c"}}, rights: []api.Right{{Election: "payments"}}},
	} {
		if got := whyNotElected(test.agent, test.e, test.campaigns, test.rights); !strings.HasPrefix(got, test.says) || test.says == "" && got != "" {
			t.Errorf("%+v: %q, want %q", test, got, test.says)
		}
	}
}
