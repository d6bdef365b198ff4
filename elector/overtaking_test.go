package elector

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

// Heartbeats are sent before other messages, so one may arrive before the Report that shows its
// sender's cluster. Until then it names no leader.
func TestAHeartbeatThatOvertakesTheReportNamesNobody(t *testing.T) {
	o := newSolo(t, nil)
	beat := election.Heartbeat{Lineage: 1, Send: 1, Version: soloRoster.Version, Echo: o.now - 1,
		Claims: []election.Claim{{Election: election.Default, Term: 3, Remaining: testTiming.Lease}}}
	o.step(election.PeerLost{Peer: "b"})
	o.step(election.PeerConnected{Peer: "b", Lineage: 1})
	o.campaign(election.Default)
	named := func() election.PeerID { return o.e.Contests()[0].Leader.Peer }
	o.hear("b", beat)
	if named() != "" {
		t.Errorf("%s is named before it said of which cluster it is", named())
	}
	o.hear("b", election.Report{Voter: true, Roster: soloRoster, Stamp: 5})
	o.hear("b", beat)
	if named() != "b" {
		t.Errorf("%q is named, want b", named())
	}
}
