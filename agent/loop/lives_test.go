package loop

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// A later life's history and watches begin with its restart: in each election that it leads, and in default
// even if it knows nothing of default yet.
func TestALaterLifeBeginsWithItsRestart(t *testing.T) {
	r := newRig(t, nil)
	r.loop.Past = &record.Past{}
	r.status.Contests = []*elector.ContestStatus{
		{Election: "others", Leader: election.Holder{Peer: "b"}, Term: 4},
		{Election: "payments", State: elector.Leading, Leader: r.loop.Self, Term: 7},
	}
	r.loop.publish(1)
	r.loop.enterRestart(1)
	entries := r.loop.History.List("", 10)
	if len(entries) != 2 || entries[0].Election != "payments" || entries[0].Term != 7 || entries[0].Leader == nil || entries[1].Election != "default" || entries[1].Leader != nil {
		t.Fatalf("%+v", entries)
	}
	for _, e := range entries {
		if e.Type != api.ChangeRestarted || e.Reason != reasonRestarted {
			t.Errorf("%+v", e)
		}
	}
	f, err := r.loop.Hub.Follow("payments", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if changes, _, _ := f.Take(); len(changes) != 1 || changes[0].Type != api.ChangeRestarted || !changes[0].IsLeader || changes[0].Term != 7 {
		t.Errorf("%+v", changes)
	}
}

// A follower that was started again hears the leader that it had followed. That is not an election: history,
// watches and metrics show neither a gap nor a change of leader.
func TestAFollowerThatWasStartedAgainSeesNoElection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	b := election.Holder{Peer: "b", Lineage: 2}
	for run, want := range []struct {
		term   election.Term
		reason string
	}{{4, "elected"}, {4, "heard again"}, {4, "heard again"}, {5, "elected"}} {
		r := newRig(t, nil)
		if err := r.loop.History.Keep(path, nil); err != nil {
			t.Fatal(err)
		}
		if run > 0 {
			r.loop.Past = &record.Past{}
		}
		r.loop.publish(1)
		r.loop.enterRestart(1)
		now := election.Instant(12 * time.Millisecond)
		r.loop.announce(now, r.loop.picture.Load(), election.Announcement{Election: "default", Event: election.Following, Leader: b, Term: want.term, Reason: election.ReasonElected})
		entry := r.loop.History.List("default", 1)[0]
		if entry.Type != api.ChangeLeader || entry.Reason != want.reason || (entry.GapMS > 0 || entry.VacantMS > 0) != (want.reason == "elected") {
			t.Errorf("run %d: %+v", run, entry)
		}
		if n, _ := r.loop.Leaders.Count(now, "default"); n != 0 {
			t.Errorf("run %d: %d changes of the leader", run, n)
		}
		f, err := r.loop.Hub.Follow("default", 1)
		if err != nil {
			t.Fatal(err)
		}
		changes, _, _ := f.Take()
		f.Close()
		if last := changes[len(changes)-1]; last.Type != api.ChangeLeader || last.Reason != want.reason {
			t.Errorf("run %d: a watch shows %+v", run, last)
		}
		if err := r.loop.History.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}
