package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

// watched returns the lines that wait for a follower, in short.
func watched(f *watch.Follower) string {
	changes, _, _ := f.Take()
	var all []string
	for _, c := range changes {
		s := c.Type
		if c.Leader != nil {
			s += " " + c.Leader.Name + ":" + c.Leader.Meta
		}
		if c.Snapshot != nil {
			s += fmt.Sprintf(" %v", c.Snapshot.Candidates)
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

// TestWatchesAreShownMetasAndCandidates: metas are shown at once, candidates at most once a second.
func TestWatchesAreShownMetasAndCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out election.Output
		r := payments(t, func(*rig) election.Output { return out })
		f, err := r.loop.Hub.Follow(string(pay), 0)
		if err != nil {
			t.Fatal(err)
		}
		is := func(leader, meta string, candidates ...election.PeerID) {
			r.mu.Lock()
			c := &elector.ContestStatus{Election: pay, State: elector.Idle, Meta: meta, Candidates: candidates}
			if leader != "" {
				c.State, c.Leader, c.Term = elector.Following, election.Holder{Peer: election.PeerID(leader)}, 4
				c.ValidUntil = r.loop.Clock().Add(time.Hour)
			}
			r.status.Contests = []*elector.ContestStatus{c}
			r.mu.Unlock()
			r.happen()
			out = election.Output{}
		}
		want := func(when, want string) {
			t.Helper()
			if got := watched(f); got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		is("", "", "b")
		want("the first candidate", "candidates [b]")
		is("", "", "b", "c")
		want("another one at once", "")
		out.Announce = []election.Announcement{{Election: pay, Event: election.Following, Leader: election.Holder{Peer: "b"}, Term: 4, Reason: election.ReasonElected}}
		is("b", "b:80", "b", "c")
		want("a leader", "leader b:b:80")
		is("b", "b:81", "b", "c")
		want("another meta", "meta b:b:81 [b c]")
		b := memberOf("b", membership.Alive)
		b.Name = "host-b"
		r.views <- membership.View{Members: []membership.Member{b}}
		synctest.Wait()
		want("gossip shows the leader", "meta host-b:b:81 [host-b c]")
		<-time.After(candidatesEvery) // by the bubble's clock; the loop's timer rings
		synctest.Wait()
		want("a second later", "candidates host-b:b:81 [host-b c]")
		<-time.After(5 * candidatesEvery)
		is("b", "b:81", "b", "c")
		want("nothing new", "")
		is("b", "", "c", "b")
		want("b is not connected", "meta host-b: [c host-b], candidates host-b: [c host-b]")
		out.Announce = []election.Announcement{{Election: pay, Event: election.NoLeader, Term: 4, Reason: election.ReasonReleased}}
		is("", "")
		want("released", "no_leader")
		<-time.After(candidatesEvery)
		synctest.Wait()
		want("a second later", "candidates []")
		r.mu.Lock()
		r.status.Contests = nil
		r.mu.Unlock()
		r.happen()
		want("it does not exist any more", "")
		if h := r.loop.History.List(string(pay), 10); slices.ContainsFunc(h, func(x api.Transition) bool { return x.Leader != nil && x.Leader.Meta != "" }) {
			t.Errorf("the history has metas: %+v", h)
		}
		r.cancel()
	})
}
