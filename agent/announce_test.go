package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

// What the hook is told of a leadership is asked for again when its turn comes,
// and the clock answers even if the loop hangs.
func TestALeadershipStandsForItsTermInsideItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		show := func(leader election.Holder, quorum bool) {
			r.mu.Lock()
			r.status.Quorum.Enabled = quorum
			r.status.Contests = []*elector.ContestStatus{{
				Election: "default", Term: 7, Leader: leader, ValidUntil: r.loop.clock().Add(lease),
			}}
			r.mu.Unlock()
			r.views <- membership.View{}
			synctest.Wait()
		}
		check := func(when string, want bool) {
			t.Helper()
			if got := r.loop.leads("default", 7); got != want {
				t.Errorf("%s: %t", when, got)
			}
			// A run of the hook goes on through a rise of the term, and ends before the
			// lease does.
			for term, led := range map[election.Term]bool{6: want, 7: want, 8: false} {
				until := r.loop.actsUntil("default", term)
				if r.status.Quorum.Enabled && led && until >= r.loop.clock().Add(lease) || led != (until > r.loop.clock()) {
					t.Errorf("%s: term %d may be acted on for %v", when, term, until.Sub(r.loop.clock()))
				}
			}
		}
		show(r.loop.self, true)
		check("inside the lease", true)
		if r.loop.leads("default", 6) || r.loop.leads("payments", 7) {
			t.Error("another term or election stands too")
		}
		show(election.Holder{Peer: "b", Lineage: 2}, true)
		check("another one leads", false)
		show(r.loop.self, true)
		<-time.After(lease) // of the bubble's clock
		check("the lease is over", false)
		show(r.loop.self, false)
		<-time.After(lease)
		check("without a quorum there is no lease", true)
		r.cancel()
	})
}

// Elections come and go: what the hook was told of those that are gone is not
// kept for ever, of one that exists it is.
func TestWhatTheHookWasToldIsBounded(t *testing.T) {
	r := newRig(t, nil)
	r.status.Contests = []*elector.ContestStatus{{Election: "lasting"}}
	r.loop.publish(0)
	is := announced{election.NoLeader, 3}
	r.loop.remember("lasting", is)
	for i := range 3 * maxAnnounced {
		r.loop.remember(election.Name(fmt.Sprint("job-", i)), is)
	}
	if n := len(r.loop.announced); n > maxAnnounced || r.loop.announced["lasting"] != is {
		t.Errorf("%d elections are remembered; of the one that exists %+v", n, r.loop.announced["lasting"])
	}
}
