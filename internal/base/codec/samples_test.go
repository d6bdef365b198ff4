package codec

import (
	"time"

	"github.com/doyen-election/doyen/election"
)

// samples has one message of each kind with every field set, in the order of the table.
// testdata/messages.golden has their bytes: do not change the samples.
func samples() []election.Message {
	var (
		ann    = election.Holder{Peer: "12D3KooWAnn", Lineage: 0xa11}
		bob    = election.Holder{Peer: "12D3KooWBob", Lineage: 0xb0b}
		round  = election.RoundID{Origin: ann.Peer, Number: 8}
		rank   = election.Rank{Priority: 100, JoinedAt: 1_700_000_000_000_000_000, Peer: bob.Peer}
		v      = election.Version{Driver: 4, Counter: 2}
		old    = []election.Voter{{Name: "ann", Peer: ann.Peer}, {Name: "bob", Peer: bob.Peer}}
		next   = []election.Voter{{Name: "cy", Peer: "12D3KooWCy"}}
		roster = election.Roster{Cluster: "c0ffee", Version: v, Voters: old, Next: next, Floor: 3}
		marked = election.Roster{Cluster: "c0ffee", Version: v, Voters: old, Next: next, Floor: 3, Committed: true}
		first  = election.Genesis{Proposer: ann.Peer, Attempt: 5, Roster: roster}
		lease  = 1200 * time.Millisecond
	)
	return []election.Message{
		election.BullyElection{Election: "pay", Round: 7, Rank: rank},
		election.BullyAnswer{Election: "pay", Round: 7},
		election.BullyDecline{Election: "pay", Round: 7},
		election.BullyCoordinator{Election: "pay", Term: 12, Leader: ann},
		election.RingElection{Election: "pay", Round: round, Best: rank},
		election.RingAck{Election: "pay", Round: round, Best: bob.Peer},
		election.RingElected{Election: "pay", Term: 12, Leader: ann},
		election.VoteRequest{Election: "pay", Term: 12, Holder: ann, Lease: lease, Send: 9, Rank: rank, Roster: roster},
		election.VoteGrant{Election: "pay", Term: 12, Holder: ann, Send: 9, Version: v, Stamp: 77},
		election.VoteRefusal{
			Election: "pay", Term: 12, Holder: ann, Granted: 13, GrantedTo: bob,
			Remaining: lease, Reason: election.RefusedPromised, Roster: &roster,
		},
		election.Release{Election: "pay", Term: 12, Holder: ann, Target: bob.Peer, StandDown: lease, Leaving: true},
		election.Heartbeat{
			Lineage: ann.Lineage, Send: 9, Version: v, Echo: 77,
			Claims: []election.Claim{{Election: "_roster", Term: 4, Remaining: lease, Rank: rank}, {Election: "pay", Term: 12, Remaining: lease, Rank: rank}},
		},
		election.HeartbeatAck{Lineage: ann.Lineage, Send: 9, Version: v, Stamp: 77, Nacks: []election.Nack{{Election: "pay", Term: 13}}, Roster: &roster},
		election.Inquiry{ID: 6, Election: "pay"},
		election.Report{ID: 6, Voter: true, Roster: &roster, Records: []election.Record{{Election: "pay", Term: 12, Holder: ann, Remaining: lease}}, Stamp: 77, Election: "pay", Lineage: bob.Lineage, Writes: 31, Known: 30},
		election.GenesisPropose{Genesis: first},
		election.GenesisAccept{Cluster: "c0ffee", Attempt: 5},
		election.GenesisRefuse{Cluster: "c0ffee", Attempt: 5, Reason: election.GenesisPending, Detail: "a"},
		election.RosterPropose{Driver: 4, Holder: ann, Roster: marked},
		election.RosterAccept{Driver: 4, Version: v, Highest: 13, Promise: lease},
		election.RosterRefuse{Driver: 4, Version: v, Granted: 6, Roster: &roster},
		election.Candidacies{Lineage: ann.Lineage, Serial: 2, Candidacies: []election.Candidacy{{Election: "default", Priority: 100}, {Election: "pay", Priority: 7}}},
		election.CandidaciesAck{Lineage: ann.Lineage, Serial: 2, By: 5},
		election.RosterCancel{Version: v},
		election.Call{ID: 7, Method: "POST", Path: "/v1/drain", Body: []byte(`{"on":true}`), Caller: "root (0), doyen"}, election.CallAnswer{ID: 7, Status: 200, Body: []byte("{}")},
		election.WordWrite{Election: "pay", Holder: ann, Version: v, Word: sampleWord()},
		election.WordAck{Election: "pay", Rank: sampleWord().Rank, Version: v},
		election.WordsWanted{Version: v, After: "job"},
		election.Words{Version: v, After: "job", Words: []election.NamedWord{{Election: "pay", Word: sampleWord()}}, More: true},
		election.Listen{Stamp: 77, Elections: []election.Name{"default", "pay"}},
		election.News{Echo: 77, Leaders: []election.Heard{{Election: "pay", Term: 12, Holder: ann, Remaining: lease, Age: 9, Sure: true}}},
	}
}
