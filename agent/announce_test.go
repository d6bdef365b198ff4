package agent

import (
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
		}
		show(r.loop.self, true)
		check("inside the lease", true)
		if r.loop.leads("default", 6) || r.loop.leads("payments", 7) {
			t.Error("another term or election stands too")
		}
		show(election.Holder{Peer: "b", Boot: 2}, true)
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
