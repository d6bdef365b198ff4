package contest

import (
	"iter"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Facts is what a contest asks about its agent and the other agents. The answers do
// not change while the contest takes a step.
type Facts interface {
	Now() election.Instant
	Roster() *election.Roster // the durable one; nil before genesis

	// Obstacle is what keeps this agent as a whole from being elected; 0: nothing does.
	Obstacle() election.Obstacle
	Doubts() bool // this agent has run late; others that have are not among the candidates
	Writes() bool // this agent's disk takes what it must promise
	Full() bool   // this agent has as many rounds and bids in progress as it may
	Closed() bool // a round that starts now has to wait in the queue
	// Informed reports whether enough voters have reported to know that nobody leads. If
	// not, it returns when to ask again, if no report comes before.
	Informed() (bool, election.Instant)
	// FirstTurn is when an agent of that rank may seek a first leader.
	FirstTurn(own election.Rank) election.Instant

	// This agent's own voter: the grant on record, the end of its promise, and the end of its
	// hold, a promise of an earlier process run that keeps it from voting for itself.
	Granted() election.Grant
	PromiseEnd() election.Instant
	HoldEnd() election.Instant

	// Candidates are the other candidates whose agents can be elected, in any order. Best is the
	// best of those that have not just stepped down.
	Candidates() iter.Seq[election.Rank]
	Best() election.Rank
	Connected() []election.PeerID      // sorted
	Runs(election.Holder) bool         // that holder's agent is connected
	Silent(election.PeerID) bool       // the agent has not answered for too long
	Votes(election.PeerID) bool        // the agent is a voter, also of a roster that is being written
	Reachable(election.PeerID) bool    // the agent's vote can be had
	StopsSoon(election.PeerID) bool    // the agent is shutting down
	SharesRoster(election.PeerID) bool // the agent holds the present roster
	// SuspectAt is when a connected leader's heartbeats are overdue.
	SuspectAt(election.PeerID) election.Instant
}

// Verdict is what a contest asks for after one step, to be carried out at once.
type Verdict struct {
	StepDown []election.Withdrawal
	Remember election.Term       // without quorum: the term that this agent leads, to be written; 0: none
	Send     []election.Envelope // the caller numbers the Vote Requests
	Announce []election.Announcement
	WakeAt   election.Instant // call Advance then
	Again    bool             // call Advance again before that
	Queue    bool             // a round waits for its turn
	Beat     bool             // send a heartbeat at once
	Won      bool             // this agent has become the leader
	Late     bool             // a vote came after the bid was given up
	Expired  election.PeerID  // the lease of this leader has expired as seen from here
}

// Counts are how often something happened in the contests of an agent. They only rise.
type Counts struct {
	Rounds        uint64 // selections started
	Attempts      uint64 // nominations that asked for votes
	TermsWon      uint64
	LeasesExpired uint64
	Suspicions    uint64
	TermLeaps     uint64 // terms that were not believed
}

// step is one call: what is known, and the verdict so far.
type step struct {
	Facts
	now    election.Instant
	roster *election.Roster
	out    Verdict
}

// begin returns its receiver, so that a step need not be allocated.
func (s *step) begin(f Facts) *step {
	s.Facts, s.now, s.roster, s.out.WakeAt = f, f.Now(), f.Roster(), election.Never
	return s
}

func (s *step) wake(at election.Instant) { s.out.WakeAt = min(s.out.WakeAt, at) }

func (s *step) send(to election.PeerID, m election.Message) {
	s.out.Send = append(s.out.Send, election.Envelope{To: to, Message: m})
}

func (s *step) sendAll(envelopes []election.Envelope) { s.out.Send = append(s.out.Send, envelopes...) }

func (s *step) sendVoters(m election.Message) {
	for _, v := range s.roster.All() {
		s.send(v.Peer, m)
	}
}

func (s *step) hasMajority() bool { return quorum.Confirmed(s.roster, s.Reachable) }
