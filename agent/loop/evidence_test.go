package loop

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// After an outage an operator asks when the lost leader was last heard, how much of its lease was left, and
// what became of its connection.
func TestTheHistorySaysWhatWasKnownOfALostLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := election.Holder{Peer: "b", Lineage: 2}
		r := newRig(t, nil)
		r.answer = func(in election.Input) election.Output {
			out := election.Output{WakeAt: election.Never}
			switch in := in.(type) {
			case election.Received:
				r.status.Contests = []*elector.ContestStatus{{Election: "default", State: elector.Following, Leader: b, Term: 4,
					HeardAt: r.loop.Clock(), ValidUntil: r.loop.Clock().Add(lease)}}
				out.Announce = []election.Announcement{{Election: "default", Event: election.Following, Leader: b, Term: 4, Reason: election.ReasonElected}}
			case election.Resign: // plays the loss of the leader
				r.status.Contests = nil
				r.status.Quorum = elector.QuorumStatus{Enabled: true, Voters: 3, Needed: 2, Reachable: 2}
				out.Announce = []election.Announcement{{Election: "default", Event: election.NoLeader, Term: 4, Reason: election.ReasonLeaseExpired}}
				out.Replies = []election.Reply{{Request: in.Request}}
			}
			return out
		}
		r.start(t)
		r.views <- membership.View{Members: []membership.Member{{Member: election.Member{Peer: "b", Name: "bee"}, Status: membership.Alive}}}
		<-time.After(300 * time.Millisecond)
		r.hear(transport.Connected{Peer: "b"})
		r.hear(transport.Message{Peer: "b"})
		<-time.After(100 * time.Millisecond)
		r.hear(transport.Lost{Peer: "b", Err: errors.New("reset")})
		<-time.After(50 * time.Millisecond)
		if _, err := r.loop.Ask(t.Context(), func(id election.RequestID) election.Input {
			return election.Resign{Election: "default", Request: id}
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := r.loop.History.List("default", 10)
		if len(got) != 2 || got[0].GapMS != 300 || got[0].Leader.Name != "bee" || !strings.HasPrefix(got[0].Evidence, "bee claims term 4 in its heartbeats, its lease lasts 1s") {
			t.Fatalf("the history is %+v", got)
		}
		const want = "bee led in term 4, last heard 150ms earlier, its lease had 850ms left, " +
			"its connection had closed 50ms earlier, gossip: alive; 2 of 3 voters can be reached, 2 needed"
		if silent := time.Duration(got[1].BoottimeNS - got[1].HeardBoottimeNS); silent != 150*time.Millisecond {
			t.Errorf("the leader was last heard %s before", silent)
		}
		if got[1].Evidence != want || got[1].Reason != "lease expired" {
			t.Errorf("evidence:\n%s\nwant:\n%s", got[1].Evidence, want)
		}
		r.cancel()
	})
}
