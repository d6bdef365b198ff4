package codec

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/doyen-election/doyen/election"
)

// One check for each kind of message, in the order of the table. Rounds, send IDs, lineages and stamps
// have no structure, so all of their values are accepted.

func checkBullyElection(m election.BullyElection) error {
	return cmp.Or(electionName(m.Election), rank("rank", m.Rank))
}

func checkBullyAnswer(m election.BullyAnswer) error { return electionName(m.Election) }

func checkBullyDecline(m election.BullyDecline) error { return electionName(m.Election) }

func checkBullyCoordinator(m election.BullyCoordinator) error {
	return cmp.Or(electionName(m.Election), term("term", m.Term), holder("leader", m.Leader))
}

func checkRingElection(m election.RingElection) error {
	return cmp.Or(electionName(m.Election), peer("round's origin", m.Round.Origin), rank("best", m.Best))
}

func checkRingAck(m election.RingAck) error {
	return cmp.Or(electionName(m.Election), peer("round's origin", m.Round.Origin), peer("best", m.Best))
}

func checkRingElected(m election.RingElected) error {
	return cmp.Or(electionName(m.Election), term("term", m.Term), holder("leader", m.Leader))
}

func checkVoteRequest(m election.VoteRequest) error {
	return cmp.Or(electionName(m.Election), term("term", m.Term), holder("holder", m.Holder),
		lease(m.Lease), maybeRank("rank", m.Rank), roster(&m.Roster))
}

func checkVoteGrant(m election.VoteGrant) error {
	return cmp.Or(electionName(m.Election), term("term", m.Term), holder("holder", m.Holder),
		maybeTerm("version's driver", m.Version.Driver), maybeWord(m.Word))
}

func checkVoteRefusal(m election.VoteRefusal) error {
	if m.Reason == 0 {
		return errors.New("no reason")
	}
	return cmp.Or(electionName(m.Election), term("term", m.Term), holder("holder", m.Holder),
		maybeTerm("granted term", m.Granted), maybeHolder("granted to", m.GrantedTo),
		maybeDuration("remaining", m.Remaining), roster(m.Roster))
}

func checkRelease(m election.Release) error {
	return cmp.Or(electionName(m.Election), term("term", m.Term), holder("holder", m.Holder),
		maybePeer("target", m.Target), maybeDuration("stand-down", m.StandDown))
}

func checkHeartbeat(m election.Heartbeat) error {
	return cmp.Or(maybeTerm("version's driver", m.Version.Driver),
		each("claims", m.Claims, election.MaxElections, func(c election.Claim) election.Name { return c.Election }, claim),
		progress(m.Progress))
}

// progress checks an election.Progress for each voter of both halves of a roster, and for the sender.
func progress(all []election.Progress) error {
	return each("progress", all, 2*election.MaxVoters+1, func(p election.Progress) election.PeerID { return p.Peer },
		func(p election.Progress) error { return peer("peer", p.Peer) })
}

func claim(c election.Claim) error {
	return cmp.Or(electionName(c.Election), term("term", c.Term), maybeDuration("remaining", c.Remaining), maybeRank("rank", c.Rank))
}

func checkHeartbeatAck(m election.HeartbeatAck) error {
	return cmp.Or(maybeTerm("version's driver", m.Version.Driver),
		each("nacks", m.Nacks, election.MaxElections, func(n election.Nack) election.Name { return n.Election }, nack),
		roster(m.Roster), progress(m.Progress))
}

// nack accepts term 0, which means that the voter has nothing on record.
func nack(n election.Nack) error { return cmp.Or(electionName(n.Election), maybeTerm("term", n.Term)) }

func checkInquiry(m election.Inquiry) error { return maybeElection(m.Election) }

func checkReport(m election.Report) error {
	return cmp.Or(roster(m.Roster),
		each("records", m.Records, election.MaxElections, func(s election.Record) election.Name { return s.Election }, record),
		maybeElection(m.Election))
}

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
		maybeHolder("holder", s.Holder), maybeDuration("remaining", s.Remaining))
}

func checkGenesisPropose(m election.GenesisPropose) error { return genesis(&m.Genesis) }

func checkGenesisAccept(m election.GenesisAccept) error { return cluster(m.Cluster) }

func checkGenesisRefuse(m election.GenesisRefuse) error {
	if m.Reason == 0 {
		return errors.New("no reason")
	}
	return cmp.Or(cluster(m.Cluster), text("detail", m.Detail, maxDetail))
}

func checkRosterPropose(m election.RosterPropose) error {
	return cmp.Or(term("driver", m.Driver), holder("holder", m.Holder), roster(&m.Roster))
}

func checkRosterAccept(m election.RosterAccept) error {
	return cmp.Or(term("driver", m.Driver), maybeTerm("version's driver", m.Version.Driver),
		maybeTerm("highest term", m.Highest), maybeDuration("promise", m.Promise))
}

func checkRosterRefuse(m election.RosterRefuse) error {
	return cmp.Or(term("driver", m.Driver), maybeTerm("version's driver", m.Version.Driver),
		maybeTerm("granted term", m.Granted), roster(m.Roster))
}

func checkRosterCancel(m election.RosterCancel) error {
	return maybeTerm("version's driver", m.Version.Driver)
}

func checkCandidacies(m election.Candidacies) error {
	return each("candidacies", m.Candidacies, election.MaxElections, func(c election.Candidacy) election.Name { return c.Election }, candidacy)
}

func candidacy(c election.Candidacy) error {
	return cmp.Or(electionName(c.Election), priority("priority", c.Priority), text("meta", c.Meta, election.MaxMeta))
}

func checkCandidaciesAck(election.CandidaciesAck) error { return nil }

func checkCall(m election.Call) error {
	switch {
	case m.Method != "GET" && m.Method != "POST":
		return fmt.Errorf("method %.16q", m.Method)
	case len(m.Path) > election.MaxCallText || len(m.Caller) > election.MaxCallText || len(m.Body) > election.MaxCallBody:
		return errors.New("path, caller or body is too long")
	}
	return nil
}

func checkCallAnswer(m election.CallAnswer) error {
	if m.Status < 100 || m.Status > 599 || len(m.Body) > election.MaxCallBody {
		return fmt.Errorf("status %d with %d bytes", m.Status, len(m.Body))
	}
	return nil
}
