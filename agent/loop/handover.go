package loop

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// handOverSlack is how much longer than one lease a hand-over may take.
const handOverSlack = 500 * time.Millisecond

// Release makes the loop hand over, waits until every term is released, and then gives others a moment to lead.
func (l *Loop) Release() {
	close(l.Shutdown)
	lease := cmp.Or(l.picture.Load().Status.Roster.Lease(), l.Lease)
	select {
	case <-l.Released:
		l.Logger.Info("handed over")
		l.voteForSuccessor()
	case <-time.After(lease + handOverSlack):
		l.Logger.Warn("stopped without a hand-over: the successor waits for the lease to end")
	}
}

// voteForSuccessor waits until others lead what was handed over, but no longer than a nominee waits
// for votes. The others may need this agent's vote, and they close their connections to this agent
// as soon as they learn that it leaves.
func (l *Loop) voteForSuccessor() {
	select {
	case <-l.Followed:
	case <-time.After(2 * l.Heartbeat):
	}
}

// reportReleased closes Released once a stopping agent has released everything, and Followed once
// others lead what it released.
func (l *Loop) reportReleased() {
	if !l.stopping || l.Core.HandingOver() {
		return
	}
	closeOnce(l.Released)
	if l.succeeded() {
		closeOnce(l.Followed)
	}
}

// closeOnce closes a channel if it is open. No other goroutine may close it.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// ledWithHeirs returns the elections that this agent leads by quorum and that have other candidates.
func (l *Loop) ledWithHeirs() (led []election.Name) {
	status := l.picture.Load().Status
	for _, c := range status.Contests {
		other := func(p election.PeerID) bool { return p != l.Self.Peer }
		if status.Quorum.Enabled && c.Leader == l.Self && slices.ContainsFunc(c.Candidates, other) {
			led = append(led, c.Election)
		}
	}
	return led
}

// succeeded reports whether other agents lead everything that was handed over.
func (l *Loop) succeeded() bool {
	now := l.Clock()
	for _, c := range l.picture.Load().Status.Contests {
		if leader, led := c.LeaderAt(now); (!led || leader == l.Self) && slices.Contains(l.handed, c.Election) {
			return false
		}
	}
	return true
}
