package elector

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

// A voter that reported a failed write is believed for a lease. Then it is asked again, even if
// nothing else happens meanwhile.
func TestG4AVoterThatCouldNotWriteIsAskedAgain(t *testing.T) {
	s := newLone(t, trioState())
	s.campaign("default")
	r := s.request(s.take(), "b", "default")
	for _, id := range []election.PeerID{"b", "c"} {
		refusal := refusalOf(r, 0)
		refusal.Reason = election.RefusedUnavailable
		s.hear(id, refusal)
	}
	s.take()
	s.pass(2 * testTiming.Lease)
	if len(sentTo[election.VoteRequest](s.sent, "b")) == 0 {
		t.Fatal("sleeps for ever though the voters may write again")
	}
}
