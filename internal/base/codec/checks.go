package codec

import (
	"cmp"

	"github.com/doyen-election/doyen/election"
)

// progress accepts one election.Progress for each voter in the two halves of a roster, and one for the sender.
func progress(all []election.Progress) error {
	return each("progress", all, 2*election.MaxVoters+1, func(p election.Progress) election.PeerID { return p.Peer },
		func(p election.Progress) error { return peer("peer", p.Peer) })
}

func claim(c election.Claim) error {
	return cmp.Or(electionName(c.Election), term("term", c.Term), maybeDuration("remaining", c.Remaining), maybe("rank", c.Rank, rank))
}

func heard(h election.Heard) error {
	return cmp.Or(electionName(h.Election), term("term", h.Term), holder("holder", h.Holder),
		maybeDuration("remaining", h.Remaining), maybeDuration("age", h.Age))
}

// nack accepts term 0, which means that the voter has nothing on record.
func nack(n election.Nack) error { return cmp.Or(electionName(n.Election), maybeTerm("term", n.Term)) }

// maybeElection accepts an empty name, which means that the message is about all elections.
func maybeElection(e election.Name) error {
	if e == "" {
		return nil
	}
	return electionName(e)
}

// record accepts a record without a holder: a term that came with a roster was granted to no agent.
func record(s election.Record) error {
	return cmp.Or(electionName(s.Election), term("term", s.Term),
		maybe("holder", s.Holder, holder), maybeDuration("remaining", s.Remaining))
}

func candidacy(c election.Candidacy) error {
	return cmp.Or(electionName(c.Election), priority("priority", c.Priority), text("meta", c.Meta, election.MaxMeta))
}
