package quorum

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

func Majority(n int) int { return n/2 + 1 }

// Confirmed reports whether the voters for which has is true are a majority for
// votes: of both halves once a joint roster is marked, before of the former half
// (R10).
func Confirmed(r *election.Roster, has func(election.PeerID) bool) bool {
	if r == nil || !confirms(r.Voters, has) {
		return false
	}
	return !r.Committed || confirms(r.Next, has)
}

// Accepted reports whether the voters for which has is true commit the roster:
// majorities of both halves of a joint one, marked or not (R9).
func Accepted(r *election.Roster, has func(election.PeerID) bool) bool {
	return confirms(r.Voters, has) && (!r.Joint() || confirms(r.Next, has))
}

func confirms(voters []election.Voter, has func(election.PeerID) bool) bool {
	n := 0
	for _, v := range voters {
		if has(v.Peer) {
			n++
		}
	}
	return n >= Majority(len(voters))
}

// supportedSince is the latest instant such that the voters whose counted send is not
// before it are a majority for votes (H3, R10).
func supportedSince(r *election.Roster, sends map[election.PeerID]election.Instant) (election.Instant, bool) {
	since, ok := majoritySend(r.Voters, sends)
	if !ok || !r.Committed {
		return since, ok
	}
	next, ok := majoritySend(r.Next, sends)
	return min(since, next), ok
}

func majoritySend(voters []election.Voter, sends map[election.PeerID]election.Instant) (election.Instant, bool) {
	var room [election.MaxVoters]election.Instant
	counted := room[:0]
	for _, v := range voters {
		if at, ok := sends[v.Peer]; ok {
			counted = append(counted, at)
		}
	}
	need := Majority(len(voters))
	if len(counted) < need {
		return 0, false
	}
	slices.Sort(counted)
	return counted[len(counted)-need], true
}
