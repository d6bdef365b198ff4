package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

// TestAnAgentThatStopsStaysUntilOthersLeadWhatItLed: the others may need its vote, and close their
// connections as soon as they learn that it leaves.
func TestAnAgentThatStopsStaysUntilOthersLeadWhatItLed(t *testing.T) {
	for name, then := range map[string]func(r *rig) time.Duration{
		"another leads": func(r *rig) time.Duration {
			<-time.After(30 * time.Millisecond)
			r.lead(election.Holder{Peer: "b", Lineage: 1}, me, "b")
			return 30 * time.Millisecond
		},
		"nobody takes it": func(*rig) time.Duration { return 2 * (lease / 6) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				r.lead(election.Holder{Peer: me, Lineage: 1}, me, "b")
				r.start(t)
				r.views <- membership.View{}
				stopped := make(chan time.Time, 1)
				began := time.Now()
				go func() {
					r.loop.Release()
					stopped <- time.Now()
				}()
				synctest.Wait()
				r.lead(election.Holder{}, me, "b")
				r.views <- membership.View{}
				want := then(r)
				r.views <- membership.View{}
				if took := (<-stopped).Sub(began); took != want {
					t.Errorf("it stayed for %s, want %s", took, want)
				}
				r.cancel()
			})
		})
	}
}

func TestAnAgentThatStopsWaitsForNobodyWhereNobodyElseCouldLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.lead(election.Holder{Peer: me, Lineage: 1}, me)
		r.start(t)
		r.views <- membership.View{}
		began := time.Now()
		r.loop.Release()
		if took := time.Since(began); took != 0 {
			t.Errorf("it stayed for %s", took)
		}
		r.cancel()
	})
}

// TestAHandOverHasTheTimeOfTheLeaseInUse: programs may act until that lease ends. It may be longer than the
// lease with which the agent was started.
func TestAHandOverHasTheTimeOfTheLeaseInUse(t *testing.T) {
	for _, agreed := range []time.Duration{0, 3 * lease} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil)
			r.handing, r.status.Roster = true, &election.Roster{Settings: election.Settings{Lease: agreed}}
			r.start(t)
			r.views <- membership.View{}
			began := time.Now()
			r.loop.Release()
			if took, want := time.Since(began), max(lease, agreed)+handOverSlack; took != want {
				t.Errorf("with an agreed lease of %s it waits for %s, want %s", agreed, took, want)
			}
			r.cancel()
		})
	}
}

// lead sets who leads the default election in the core, and who the candidates are.
func (r *rig) lead(leader election.Holder, candidates ...election.PeerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &elector.ContestStatus{Election: election.Default, Leader: leader, Candidates: candidates}
	if leader != (election.Holder{}) {
		c.ValidUntil = election.Never
	}
	r.status.Quorum.Enabled = true
	r.status.Contests = []*elector.ContestStatus{c}
}
