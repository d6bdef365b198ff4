package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/plan"
)

// Elections with equal candidates and leaders have equal outcomes, except for the terms. So a plan for a
// thousand of them is as quick as for a few.
func TestAThousandElectionsAreAnsweredByTheFewThatDiffer(t *testing.T) {
	s := cluster(election.Bully, "a", "b", "c", "d", "e")
	s.Elections = nil
	for i := range 1000 {
		l, next := i%5, (i+1)%5
		s.Elections = append(s.Elections, plan.Election{Name: election.Name(fmt.Sprintf("e%03d", i)), Term: election.Term(i + 1),
			Leader: s.Agents[l].Peer, Candidates: []election.PeerID{s.Agents[l].Peer, s.Agents[next].Peer}})
	}
	began := time.Now()
	r := ask(t, s, plan.Faults{Down: []string{"a", "c"}})
	for i, f := range r.Elections {
		want, stays := fmt.Sprintf("0:%s@%d none:", s.Agents[i%5].Name, i+1), true
		if i%5 == 0 || i%5 == 2 {
			want, stays = fmt.Sprintf("0:%s@%d none:", s.Agents[i%5+1].Name, i+2), false
		}
		if told(f) != want || f.Then[0].Stays != stays {
			t.Fatalf("%s: %+v, want %q", f.Election, f, want)
		}
	}
	t.Logf("%d runs in %s", r.Runs, time.Since(began))
}
