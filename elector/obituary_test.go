package elector

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

var (
	bHolder = election.Holder{Peer: "b", Lineage: 1}
	bDied   = election.Obituary{Peer: "b", Lineage: 1, Secret: secretOf(bHolder)}
)

// promisedToB is an a that follows b, by its own vote among others, and is a candidate.
func promisedToB(t *testing.T) *solo {
	s := newSolo(t, nil)
	s.step(election.PeerConnected{Peer: "b", Lineage: 1, Secret: hashOf(bHolder)})
	s.hear("b", election.Report{Voter: true, Roster: soloRoster, Stamp: 5})
	for _, e := range []election.Name{election.Default, "jobs"} {
		s.hear("b", election.VoteRequest{Election: e, Term: 4, Holder: bHolder, Rank: election.Rank{Peer: "b"},
			Lease: testTiming.Lease, Send: 1, Roster: *soloRoster})
	}
	s.hear("b", election.Heartbeat{Lineage: 1, Send: 2, Version: soloRoster.Version, Echo: s.now,
		Claims: []election.Claim{{Election: election.Default, Term: 4, Remaining: testTiming.Lease}}})
	s.campaign(election.Default)
	if got := s.status(election.Default); got.Leader != bHolder || got.Term != 4 {
		t.Fatalf("follows %+v", got)
	}
	s.clear()
	return s
}

func (s *solo) released(name election.Name) bool { return s.disk.Grants[name].Released }

func TestK5AnObituaryEndsWhatTheLineageWasPromised(t *testing.T) {
	for name, hear := range map[string]func(*solo){
		"from another peer": func(s *solo) { s.hear("c", bDied) },
		"from a stranger":   func(s *solo) { s.hear("stranger", bDied) },
		"once it is not connected any more, leases later": func(s *solo) {
			s.step(election.PeerLost{Peer: "b"})
			s.pass(3 * testTiming.Lease)
			s.hear("", bDied)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := promisedToB(t)
			hear(s)
			if !s.released("jobs") || s.e.voter.PromiseEnd("jobs") != 0 {
				t.Fatalf("on disk is %+v", s.disk.Grants)
			}
			if got := s.status(election.Default); got.Leader == bHolder {
				t.Fatalf("still names it: %+v", got)
			}
		})
	}
}

func TestK5TheNextLeaderNeedNotWait(t *testing.T) {
	s := promisedToB(t)
	s.hear("c", bDied)
	if len(s.announced) != 1 || s.announced[0].Event != election.NoLeader || s.announced[0].Reason != election.ReasonDied {
		t.Fatalf("announced %+v", s.announced)
	}
	s.answerRound()
	r := s.request(s.sent, "c", election.Default)
	s.hear("c", grant(r))
	if !s.leads(election.Default) || r.Term != 5 {
		t.Fatalf("asked for %d, shows %+v", r.Term, s.status(election.Default))
	}
}

func TestK5AnObituaryIsPassedOnOnce(t *testing.T) {
	s := promisedToB(t)
	s.step(election.PeerConnected{Peer: "d", Lineage: 1})
	s.clear()
	for range 3 {
		s.hear("c", bDied)
	}
	if to := sentTo[election.Obituary](s.sent, "d"); len(to) != 1 || to[0] != bDied {
		t.Fatalf("passed on %+v", to)
	}
	for _, p := range []election.PeerID{"b", "c"} {
		if back := sentTo[election.Obituary](s.sent, p); len(back) != 0 {
			t.Fatalf("sent it to %s as well", p)
		}
	}
	if n := s.e.Counters().Dropped["obituary_of_unknown"]; n != 2 {
		t.Fatalf("dropped %d replays", n)
	}
}

func TestK5WithoutTheSecretNobodyIsBuried(t *testing.T) {
	forged, former, unknown := bDied, bDied, bDied
	forged.Secret[0]++
	former.Lineage++
	unknown.Peer = "z"
	zero := election.Obituary{Peer: "c", Lineage: 1}
	for name, m := range map[string]election.Obituary{"forged_obituary": forged, "obituary_of_unknown": former,
		"obituary_of_unknown ": unknown, "obituary_of_unknown  ": zero} {
		s := promisedToB(t)
		s.hear("c", m)
		if s.released("jobs") || s.status(election.Default).Leader != bHolder || len(sentTo[election.Obituary](s.sent, "b")) != 0 {
			t.Errorf("%s: counts", name)
		}
		s.hear("c", bDied)
		if !s.released("jobs") {
			t.Errorf("%s: the right one counts no more", name)
		}
	}
}

// Once a lineage has begun another one, or told of no secret, an obituary of it is unknown;
// and the new lineage is not buried with the old one.
func TestK5ALaterLineageIsNotBuried(t *testing.T) {
	s := promisedToB(t)
	s.step(election.PeerConnected{Peer: "b", Lineage: 2})
	s.hear("c", bDied)
	if s.released("jobs") {
		t.Fatal("counts without a hash to prove it")
	}
}

// A voter that restarted was told nothing: it ignores obituaries, and its hold stays (V5).
func TestK5AVoterThatRestartedIgnoresObituaries(t *testing.T) {
	n := promisedToB(t).dies(nil).meets()
	n.hear("c", bDied)
	if n.released(election.Default) || n.e.voter.HoldEnd(election.Default, election.Holder{Peer: "c", Lineage: 1}) == 0 {
		t.Fatalf("on disk is %+v", n.disk.Grants)
	}
}

func TestK6NobodyBuriesItself(t *testing.T) {
	s := newSolo(t, nil).leader()
	own := election.Obituary{Peer: "a", Lineage: soloSelf.Lineage, Secret: secretOf(soloSelf)}
	s.step(election.PeerConnected{Peer: "a", Lineage: soloSelf.Lineage, Secret: hashOf(soloSelf)})
	s.clear()
	s.hear("b", own)
	if !s.leads(election.Default) || s.released(election.Default) || len(s.sent)+len(s.withdrawn) != 0 {
		t.Fatalf("sent %+v, withdrew %+v", s.sent, s.withdrawn)
	}
}

// The hash of a lineage that nobody waits for is not kept for ever.
func TestK5SecretsAreForgotten(t *testing.T) {
	s := promisedToB(t)
	s.step(election.PeerConnected{Peer: "z", Lineage: 1, Secret: [32]byte{1}})
	s.step(election.PeerLost{Peer: "z"})
	s.step(election.PeerLost{Peer: "b"})
	s.pass(3 * testTiming.Lease)
	if keys := s.e.secrets.keys; len(keys) != 2 { // of b, which was promised something, and c, which is connected
		t.Fatalf("keeps those of %v", keys)
	}
}

// A late heartbeat of the dead leads nobody back to it.
func TestK5LateMessagesOfTheDeadCountForNothing(t *testing.T) {
	s := promisedToB(t)
	s.hear("c", bDied)
	s.step(election.PeerConnected{Peer: "b", Lineage: 1})
	s.hear("b", election.Report{Voter: true, Roster: soloRoster, Stamp: 5})
	s.hear("b", election.Heartbeat{Lineage: 1, Send: 3, Version: soloRoster.Version, Echo: s.now,
		Claims: []election.Claim{{Election: election.Default, Term: 4, Remaining: testTiming.Lease}}})
	if got := s.status(election.Default); got.Leader == bHolder {
		t.Fatalf("names it again: %+v", got)
	}
	if got := sentTo[election.HeartbeatAck](s.sent, "b"); len(got) != 1 || len(got[0].Nacks) != 1 {
		t.Fatalf("renews what is released: %+v", got)
	}
}

func TestK5WithoutQuorumTheLeaderIsNotNamedAnyMore(t *testing.T) {
	s := newSolo(t, func(c *Config, st *election.State) { c.Quorum, st.Roster = false, nil })
	s.step(election.PeerConnected{Peer: "b", Lineage: 1, Secret: hashOf(bHolder)})
	s.hear("b", election.Heartbeat{Lineage: 1, Send: 2, Claims: []election.Claim{{Election: election.Default, Term: 4, Remaining: testTiming.Lease,
		Rank: election.Rank{Priority: 100, Peer: "b"}}}})
	if got := s.status(election.Default); got.Leader != bHolder {
		t.Fatalf("follows %+v", got)
	}
	s.hear("c", bDied)
	if got := s.status(election.Default); got.Leader == bHolder {
		t.Fatalf("still names it: %+v", got)
	}
}
