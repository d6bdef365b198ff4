package elector

import (
	"slices"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// A voter has not granted the former life's term, so this life asks it for that term. The voter promises
// the lease of the request, so this life must count exactly that lease (H3, K4e).
func TestK4eTheFormerTermIsAskedForWithTheLeaseThatIsCounted(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.now = s.now.Add(testTiming.Lease / 2)
	n := s.dies(func(cfg *election.Config, _ *election.Past) { cfg.Lease = testTiming.Lease * 3 / 4 }).meets()
	before := n.status(election.Default).ValidUntil
	beat := last[election.Heartbeat](n, "c") // c has not voted for the former life
	n.clear()
	n.now = n.now.Add(testTiming.Heartbeat / 10)
	n.hear("c", election.HeartbeatAck{Lineage: beat.Lineage, Send: beat.Send, Version: beat.Version,
		Nacks: []election.Nack{{Election: election.Default}}})
	requests := sentTo[election.VoteRequest](n.sent, "c")
	i := slices.IndexFunc(requests, func(r election.VoteRequest) bool { return r.Term == 1 })
	if i < 0 {
		return // c need not be asked
	}
	n.hear("c", grant(requests[i]))
	promised := n.now.Add(requests[i].Lease)
	if until := n.status(election.Default).ValidUntil; until > max(before, promised) {
		t.Errorf("c promised %s, which is until %d, and by its vote this life leads until %d, not %d", requests[i].Lease, promised, until, before)
	}
}
