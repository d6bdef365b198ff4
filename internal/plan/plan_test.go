package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/plan"
)

// cluster is a snapshot of agents with these names, all voters. The first one is the oldest, and leads default
// in term 7.
func cluster(algorithm string, names ...string) plan.Snapshot {
	s := plan.Snapshot{
		Algorithm: algorithm, Timing: election.Timing{Heartbeat: 200 * time.Millisecond, Lease: 1200 * time.Millisecond},
		Quorum: true, Preempt: true, PreemptDelay: 5 * time.Second,
		Roster: &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}},
	}
	e := plan.Election{Name: election.Default, Leader: peer(names[0]), Term: 7}
	for i, n := range names {
		s.Roster.Voters = append(s.Roster.Voters, election.Voter{Name: n, Peer: peer(n)})
		s.Agents = append(s.Agents, plan.Agent{Name: n, Peer: peer(n), JoinedAt: int64(i + 1), Priority: 100})
		e.Candidates = append(e.Candidates, peer(n))
	}
	s.Elections = []plan.Election{e}
	return s
}

func peer(name string) election.PeerID { return election.PeerID("peer-" + name) }

func ask(t *testing.T, s plan.Snapshot, f plan.Faults) plan.Report {
	t.Helper()
	r, err := plan.Ask(s, f, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Settled {
		t.Errorf("not settled: %+v", r)
	}
	return r
}

// told writes the forecast of one election in short form.
func told(f plan.Forecast) string {
	var all []string
	for _, r := range f.Then {
		all = append(all, fmt.Sprintf("%d:%s@%d", r.Side, strings.Join(r.Leaders, "|"), r.Term))
	}
	return strings.Join(all, " ") + " none:" + strings.Join(f.Leaderless, ",")
}

func TestWhoWouldLead(t *testing.T) {
	for _, algorithm := range []string{election.Bully, election.Ring} {
		five := cluster(algorithm, "a", "b", "c", "d", "e")
		for _, c := range []struct {
			name   string
			s      plan.Snapshot
			faults plan.Faults
			want   string
		}{
			{"nothing happens", five, plan.Faults{}, "0:a@7 none:"},
			{"a follower goes", five, plan.Faults{Down: []string{"c"}}, "0:a@7 none:"},
			{"the leader goes", five, plan.Faults{Down: []string{"a"}}, "0:b@8 none:"},
			{"two go", five, plan.Faults{Down: []string{"a", "b"}}, "0:c@8 none:"},
			{"the majority goes", five, plan.Faults{Down: []string{"a", "b", "c"}}, " none:d,e"},
			{"the leader is in the minority", five, plan.Faults{Groups: [][]string{{"a", "b"}}}, "0:c@8 none:a,b"},
			{"the leader is in the majority", five, plan.Faults{Groups: [][]string{{"a", "b", "c"}, {"d", "e"}}}, "0:a@7 none:d,e"},
			{"three sides", five, plan.Faults{Groups: [][]string{{"a", "b"}, {"c", "d"}}}, " none:a,b,c,d,e"},
			{"cut and down", five, plan.Faults{Down: []string{"c"}, Groups: [][]string{{"a"}}}, "0:b@8 none:a"},
		} {
			t.Run(algorithm+", "+c.name, func(t *testing.T) {
				r := ask(t, c.s, c.faults)
				if got := told(r.Elections[0]); got != c.want {
					t.Errorf("%q, want %q: %+v", got, c.want, r)
				}
				for _, reign := range r.Elections[0].Then {
					most := int64(1200 + 2*200 + 400) // the lease, detection, a round, the votes
					if reign.Stays != (reign.Leaders[0] == "a") || reign.Stays != (reign.LatestMS == 0) || reign.LatestMS > most || reign.EarliestMS > reign.LatestMS {
						t.Errorf("implausible: %+v", reign)
					}
				}
			})
		}
	}
}

func TestTheQuorumIsToldForEachSide(t *testing.T) {
	r := ask(t, cluster(election.Bully, "a", "b", "c", "d"), plan.Faults{Down: []string{"d"}, Groups: [][]string{{"a"}}})
	want := []plan.Side{{Agents: []string{"b", "c"}, Voters: 4, Reachable: 2, Needed: 3}, {Agents: []string{"a"}, Voters: 4, Reachable: 1, Needed: 3}}
	if !reflect.DeepEqual(r.Sides, want) || !slices.Equal(r.Down, []string{"d"}) {
		t.Errorf("sides %+v, down %v", r.Sides, r.Down)
	}
}

func TestWithoutAQuorumEverySideLeads(t *testing.T) {
	s := cluster(election.Bully, "a", "b", "c")
	s.Quorum, s.Roster = false, nil
	r := ask(t, s, plan.Faults{Groups: [][]string{{"a"}}})
	if got := told(r.Elections[0]); got != "0:b@8 1:a@7 none:" {
		t.Errorf("%q", got)
	}
}

// One agent only votes, one is only a candidate, one does neither. In one election the best candidate is not
// the oldest.
func TestVotersCandidatesAndObserversPlayTheirParts(t *testing.T) {
	s := cluster(election.Bully, "a", "b", "c", "d", "o")
	s.Roster.Voters = s.Roster.Voters[:3]
	s.Elections[0].Candidates = s.Elections[0].Candidates[:2]
	s.Elections = append(s.Elections, plan.Election{Name: "payments", Leader: peer("d"), Term: 3, Candidates: []election.PeerID{peer("d"), peer("b")}},
		plan.Election{Name: "cron", Term: 2, Candidates: []election.PeerID{peer("b")}})
	r := ask(t, s, plan.Faults{Down: []string{"d", "c"}})
	got := map[string]string{}
	for _, f := range r.Elections {
		got[f.Election] = told(f)
	}
	want := map[string]string{"default": "0:a@7 none:", "payments": "0:b@4 none:", "cron": "0:b@3 none:"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAHigherPriorityThatWaitsTakesOver(t *testing.T) {
	s := cluster(election.Bully, "a", "b", "c")
	s.Agents[2].Priority = 200
	r := ask(t, s, plan.Faults{})
	if got := told(r.Elections[0]); got != "0:c@8 none:" {
		t.Errorf("%q", got)
	}
}

func TestALeaderHandsOverWithinMilliseconds(t *testing.T) {
	for _, algorithm := range []string{election.Bully, election.Ring} {
		s := cluster(algorithm, "a", "b", "c")
		s.Elections = append(s.Elections, plan.Election{Name: "payments", Leader: peer("a"), Term: 3, Candidates: []election.PeerID{peer("a"), peer("b"), peer("c")}})
		for _, c := range []struct {
			faults          plan.Faults
			hosts, payments string
		}{
			{plan.Faults{Election: "payments", To: "c"}, "0:a@7 none:", "0:c@4 none:"},
			{plan.Faults{Election: "default", To: "b"}, "0:b@8 none:", "0:a@3 none:"},
			{plan.Faults{Stopped: []string{"a"}}, "0:b@8 none:", "0:b@4 none:"},
		} {
			r := ask(t, s, c.faults)
			if told(r.Elections[0]) != c.hosts || told(r.Elections[1]) != c.payments {
				t.Errorf("%s, %+v: %s; %s", algorithm, c.faults, told(r.Elections[0]), told(r.Elections[1]))
			}
			for _, f := range r.Elections {
				if late := f.Then[0].LatestMS; late > 100 || late == 0 && !f.Then[0].Stays {
					t.Errorf("%s, %+v: %s leads after %d ms", algorithm, c.faults, f.Then[0].Leaders, late)
				}
			}
		}
	}
}

func TestALeaderThatIsGoneAlreadyHasASuccessorInAHigherTerm(t *testing.T) {
	s := cluster(election.Bully, "a", "b", "c")
	s.Agents = s.Agents[1:]
	r := ask(t, s, plan.Faults{})
	if got := told(r.Elections[0]); got != "0:b@8 none:" {
		t.Errorf("%q", got)
	}
}

func TestEqualQuestionsGetEqualAnswers(t *testing.T) {
	s := cluster(election.Ring, "a", "b", "c")
	f := plan.Faults{Down: []string{"a"}}
	first, _ := json.Marshal(ask(t, s, f))
	second, _ := json.Marshal(ask(t, s, f))
	if string(first) != string(second) {
		t.Errorf("%s\n%s", first, second)
	}
}

func TestQuestionsThatMakeNoSense(t *testing.T) {
	s := cluster(election.Bully, "a", "b", "c")
	s.Agents = s.Agents[:2] // c is a voter that is already down
	for name, c := range map[string]struct {
		faults plan.Faults
		says   string
	}{
		"unknown down":  {plan.Faults{Down: []string{"z"}}, `"z"`},
		"unknown cut":   {plan.Faults{Groups: [][]string{{"a"}, {"z"}}}, `"z"`},
		"twice":         {plan.Faults{Groups: [][]string{{"a"}, {"a"}}}, "two sides"},
		"an empty side": {plan.Faults{Groups: [][]string{{"a"}, {}}}, "is empty"},
		"no target":     {plan.Faults{Election: "default", To: "c"}, `no live agent is named "c"`},
		"nobody left":   {plan.Faults{Down: []string{"a", "b", "c"}}, "no agent is left"},
	} {
		_, err := plan.Ask(s, c.faults, 1)
		bad, ok := errors.AsType[*plan.InputError](err)
		if !ok || !strings.Contains(bad.Problem, c.says) || bad.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := ask(t, s, plan.Faults{Down: []string{"c"}}); told(r.Elections[0]) != "0:a@7 none:" {
		t.Errorf("a voter that is down already: %+v", r)
	}
	s.Roster = nil
	if _, err := plan.Ask(s, plan.Faults{}, 1); err == nil {
		t.Error("there is no roster, and no error")
	}
}
