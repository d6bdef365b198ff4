package agent

import (
	"testing"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// A later life's first entries, and the first changes for who followed the former life, are that
// the agent was restarted: in what it leads, and in default, whether it has heard of that or not.
func TestALaterLifeBeginsWithItsRestart(t *testing.T) {
	r := newRig(t, nil)
	r.loop.past = &record.Past{}
	r.status.Contests = []*elector.ContestStatus{
		{Election: "others", Leader: election.Holder{Peer: "b"}, Term: 4},
		{Election: "payments", State: elector.Leading, Leader: r.loop.self, Term: 7},
	}
	r.loop.publish(1)
	r.loop.enterRestart(1)
	entries := r.loop.history.List("", 10)
	if len(entries) != 2 || entries[0].Election != "payments" || entries[0].Term != 7 || entries[0].Leader == nil || entries[1].Election != "default" || entries[1].Leader != nil {
		t.Fatalf("%+v", entries)
	}
	for _, e := range entries {
		if e.Type != api.ChangeRestarted || e.Reason != reasonRestarted {
			t.Errorf("%+v", e)
		}
	}
	f, err := r.loop.hub.Follow("payments", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if changes, _, _ := f.Take(); len(changes) != 1 || changes[0].Type != api.ChangeRestarted || !changes[0].IsLeader || changes[0].Term != 7 {
		t.Errorf("%+v", changes)
	}
}
