package codec

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
)

// draw generates sensible values of every type, sometimes without the optional parts. An empty list is nil, as
// it is after decoding.

type draw struct{ *rapid.T }

func (d draw) name() election.Name {
	if rapid.IntRange(0, 9).Draw(d.T, "roster election?") == 0 {
		return election.RosterElection
	}
	return election.Name(d.label())
}

func (d draw) maybeName() election.Name {
	if d.bool() {
		return ""
	}
	return d.name()
}

func (d draw) label() string {
	return rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,62}`).Draw(d.T, "name")
}

func (d draw) peer() election.PeerID {
	return election.PeerID(rapid.StringMatching(`12D3Koo[1-9A-HJ-NP-Za-km-z]{1,121}`).Draw(d.T, "peer"))
}

func (d draw) holder() election.Holder {
	return election.Holder{Peer: d.peer(), Lineage: election.LineageID(d.uint())}
}

func (d draw) maybeHolder() election.Holder {
	if d.bool() {
		return election.Holder{}
	}
	return d.holder()
}

func (d draw) rank() election.Rank {
	return election.Rank{
		Priority: rapid.IntRange(0, maxPriority).Draw(d.T, "priority"),
		JoinedAt: rapid.Int64().Draw(d.T, "joined at"),
		Peer:     d.peer(),
	}
}

func (d draw) term() election.Term {
	return election.Term(rapid.Uint64Range(1, uint64(maxTerm)).Draw(d.T, "term"))
}

func (d draw) word() election.Word {
	w := election.Word{Rank: election.WordRank{Term: d.term(), Seq: d.uint()}, Text: d.text()}
	if w.ID = w.Rank; d.bool() {
		w.Rank.Term = min(w.Rank.Term+1, election.MaxTerm)
	}
	return w
}

func (d draw) maybeWord() election.Word {
	if d.bool() {
		return election.Word{}
	}
	return d.word()
}

func (d draw) uint() uint64              { return rapid.Uint64().Draw(d.T, "uint") }
func (d draw) send() election.SendID     { return election.SendID(d.uint()) }
func (d draw) bool() bool                { return rapid.Bool().Draw(d.T, "bool") }
func (d draw) instant() election.Instant { return election.Instant(rapid.Int64().Draw(d.T, "instant")) }
func (d draw) text() string {
	return rapid.StringN(0, 50, maxDetail).Draw(d.T, "text")
}

func (d draw) cluster() string {
	return rapid.StringMatching(`[0-9a-f]{1,32}`).Draw(d.T, "cluster")
}

func (d draw) lease() time.Duration { return min(d.duration(), election.MaxLease) }

func (d draw) duration() time.Duration {
	return time.Duration(rapid.Int64Range(1, int64(maxDuration)).Draw(d.T, "duration"))
}

func (d draw) version() election.Version {
	return election.Version{Driver: d.term(), Counter: d.uint()}
}

func (d draw) voters(least int) []election.Voter {
	peers := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) election.PeerID { return draw{t}.peer() }),
		least, 5, rapid.ID[election.PeerID]).Draw(d.T, "voters")
	slices.Sort(peers)
	var voters []election.Voter
	for i, p := range peers {
		voters = append(voters, election.Voter{Name: fmt.Sprintf("host-%d", i), Peer: p})
	}
	return voters
}

func (d draw) peers() (peers []election.PeerID) {
	for _, v := range d.voters(1) {
		peers = append(peers, v.Peer)
	}
	return peers
}

func (d draw) roster() election.Roster {
	r := election.Roster{
		Cluster: d.cluster(), Version: d.version(), Voters: d.voters(1), Next: d.voters(0), Floor: d.term() - 1,
	}
	r.Committed = r.Joint() && d.bool()
	if d.bool() {
		r.Settings.Algorithm = rapid.SampledFrom([]string{"", "bully", "ring"}).Draw(d.T, "algorithm")
		r.Settings.Lease = d.lease()
	}
	for _, name := range d.names() {
		if name != election.RosterElection && d.bool() {
			r.Rights = append(r.Rights, election.Right{Election: name, Agents: d.peers(), MaxPriority: d.rank().Priority})
		}
	}
	return r
}

func (d draw) maybeRoster() *election.Roster {
	if d.bool() {
		return nil
	}
	r := d.roster()
	return &r
}

func (d draw) genesis() election.Genesis {
	return election.Genesis{Proposer: d.peer(), Attempt: d.uint(), Roster: d.roster()}
}

func (d draw) names() []election.Name {
	names := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) election.Name { return draw{t}.name() }),
		0, 5, rapid.ID[election.Name]).Draw(d.T, "names")
	slices.Sort(names)
	return names
}

func (d draw) claims() (list []election.Claim) {
	for _, n := range d.names() {
		list = append(list, election.Claim{Election: n, Term: d.term(), Remaining: d.duration(), Rank: d.rank()})
	}
	return list
}

func (d draw) leaders() (list []election.Heard) {
	for _, n := range d.names() {
		list = append(list, election.Heard{Election: n, Term: d.term(), Holder: d.holder(), Remaining: d.duration(), Age: d.duration() - 1, Sure: d.bool()})
	}
	return list
}

func (d draw) nacks() (list []election.Nack) {
	for _, n := range d.names() {
		list = append(list, election.Nack{Election: n, Term: d.term() - 1})
	}
	return list
}

func (d draw) records() (list []election.Record) {
	for _, n := range d.names() {
		list = append(list, election.Record{Election: n, Term: d.term(), Holder: d.maybeHolder(), Remaining: d.duration()})
	}
	return list
}

// messageOf has the generators of all kinds of message, by the kind's name.
var messageOf = map[string]func(draw) election.Message{
	"BullyElection": func(d draw) election.Message {
		return election.BullyElection{Election: d.name(), Round: d.uint(), Rank: d.rank()}
	},
	"BullyAnswer": func(d draw) election.Message {
		return election.BullyAnswer{Election: d.name(), Round: d.uint()}
	},
	"BullyDecline": func(d draw) election.Message {
		return election.BullyDecline{Election: d.name(), Round: d.uint()}
	},
	"BullyCoordinator": func(d draw) election.Message {
		return election.BullyCoordinator{Election: d.name(), Term: d.term(), Leader: d.holder()}
	},
	"RingElection": func(d draw) election.Message {
		return election.RingElection{Election: d.name(), Round: election.RoundID{Origin: d.peer(), Number: d.uint()}, Best: d.rank()}
	},
	"RingAck": func(d draw) election.Message {
		return election.RingAck{Election: d.name(), Round: election.RoundID{Origin: d.peer(), Number: d.uint()}, Best: d.peer()}
	},
	"RingElected": func(d draw) election.Message {
		return election.RingElected{Election: d.name(), Term: d.term(), Leader: d.holder()}
	},
	"VoteRequest": func(d draw) election.Message {
		return election.VoteRequest{
			Election: d.name(), Term: d.term(), Holder: d.holder(), Lease: d.lease(),
			Send: d.send(), Rank: d.rank(), Roster: d.roster(),
		}
	},
	"VoteGrant": func(d draw) election.Message {
		return election.VoteGrant{
			Election: d.name(), Term: d.term(), Holder: d.holder(), Send: d.send(), Version: d.version(), Stamp: d.instant(), Word: d.maybeWord(),
		}
	},
	"WordWrite": func(d draw) election.Message {
		return election.WordWrite{Election: d.name(), Holder: d.holder(), Version: d.version(), Word: d.word()}
	},
	"Listen": func(d draw) election.Message {
		return election.Listen{Stamp: d.instant(), Elections: d.names()}
	},
	"News": func(d draw) election.Message { return election.News{Echo: d.instant(), Leaders: d.leaders()} },
	"WordsWanted": func(d draw) election.Message {
		return election.WordsWanted{Version: d.version(), After: d.maybeName()}
	},
	"Words": func(d draw) election.Message {
		return election.Words{Version: d.version(), After: d.maybeName(), Words: []election.NamedWord{{Election: d.name(), Word: d.word()}}, More: d.bool()}
	},
	"WordAck": func(d draw) election.Message {
		return election.WordAck{Election: d.name(), Rank: d.word().Rank, Version: d.version()}
	},
	"VoteRefusal": func(d draw) election.Message {
		return election.VoteRefusal{
			Election: d.name(), Term: d.term(), Holder: d.holder(), Granted: d.term() - 1,
			GrantedTo: d.maybeHolder(), Remaining: d.duration() - 1,
			Reason: election.RefusalReason(rapid.Uint8Range(1, 255).Draw(d.T, "reason")), Roster: d.maybeRoster(),
		}
	},
	"Release": func(d draw) election.Message {
		return election.Release{
			Election: d.name(), Term: d.term(), Holder: d.holder(), Target: d.maybeHolder().Peer,
			StandDown: d.duration() - 1, Leaving: d.bool(),
		}
	},
	"Heartbeat": func(d draw) election.Message {
		return election.Heartbeat{
			Lineage: election.LineageID(d.uint()), Send: d.send(), Version: d.version(), Echo: d.instant(), Claims: d.claims(),
			Progress: d.progress(),
		}
	},
	"HeartbeatAck": func(d draw) election.Message {
		return election.HeartbeatAck{
			Lineage: election.LineageID(d.uint()), Send: d.send(), Version: d.version(), Stamp: d.instant(),
			Nacks: d.nacks(), Roster: d.maybeRoster(), Progress: d.progress(),
		}
	},
	"Inquiry": func(d draw) election.Message { return election.Inquiry{ID: d.uint(), Election: d.maybeName()} },
	"Report": func(d draw) election.Message {
		return election.Report{ID: d.uint(), Voter: d.bool(), Roster: d.maybeRoster(), Records: d.records(), Stamp: d.instant(), Election: d.maybeName(),
			Lineage: election.LineageID(d.uint()), Writes: d.uint(), Known: d.uint()}
	},
	"GenesisPropose": func(d draw) election.Message { return election.GenesisPropose{Genesis: d.genesis()} },
	"GenesisAccept": func(d draw) election.Message {
		return election.GenesisAccept{Cluster: d.cluster(), Attempt: d.uint()}
	},
	"GenesisRefuse": func(d draw) election.Message {
		return election.GenesisRefuse{Cluster: d.cluster(), Attempt: d.uint(), Reason: election.Objection(rapid.Uint8Range(1, 255).Draw(d.T, "reason")), Detail: d.text()}
	},
	"RosterPropose": func(d draw) election.Message {
		return election.RosterPropose{Driver: d.term(), Holder: d.holder(), Roster: d.roster()}
	},
	"RosterAccept": func(d draw) election.Message {
		return election.RosterAccept{Driver: d.term(), Version: d.version(), Highest: d.term() - 1, Promise: d.duration() - 1}
	},
	"Call": func(d draw) election.Message {
		return election.Call{ID: d.uint(), Method: rapid.SampledFrom([]string{"GET", "POST"}).Draw(d.T, "method"), Path: d.text(), Caller: d.text(), Body: []byte("x" + d.text())}
	},
	"CallAnswer": func(d draw) election.Message {
		return election.CallAnswer{ID: d.uint(), Status: rapid.Uint64Range(100, 599).Draw(d.T, "status"), Body: []byte("x" + d.text())}
	},
	"RosterCancel": func(d draw) election.Message { return election.RosterCancel{Version: d.version()} },
	"RosterRefuse": func(d draw) election.Message {
		return election.RosterRefuse{Driver: d.term(), Version: d.version(), Granted: d.term() - 1, Roster: d.maybeRoster()}
	},
	"Candidacies": func(d draw) election.Message {
		m := election.Candidacies{Lineage: election.LineageID(d.uint()), Serial: d.uint()}
		for _, n := range d.names() {
			m.Candidacies = append(m.Candidacies, election.Candidacy{Election: n, Priority: rapid.IntRange(0, maxPriority).Draw(d.T, "priority"), Meta: d.text()})
		}
		return m
	},
	"CandidaciesAck": func(d draw) election.Message {
		return election.CandidaciesAck{Lineage: election.LineageID(d.uint()), Serial: d.uint(), By: election.LineageID(d.uint()), Run: election.RunID(d.uint())}
	},
}

func (d draw) progress() []election.Progress {
	if d.bool() {
		return nil
	}
	return []election.Progress{{Peer: d.peer(), Lineage: election.LineageID(d.uint()), Stamp: d.instant(), Writes: d.uint()}}
}

func (d draw) state() election.State {
	s := election.State{Peer: d.peer(), Roster: d.maybeRoster(), Attempt: d.uint(), Forgotten: d.term() - 1, Writes: d.uint()}
	if d.bool() {
		g := d.genesis()
		s.Pending = &g
	}
	for _, n := range d.names() {
		if s.Grants == nil {
			s.Grants, s.Seen = map[election.Name]election.Grant{}, map[election.Name]election.Term{}
		}
		s.Grants[n] = election.Grant{Term: d.term(), Holder: d.maybeHolder(), Lease: d.lease() - 1, Released: d.bool()}
		s.Seen[n] = d.term()
	}
	return s
}
