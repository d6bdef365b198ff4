package contest

import (
	"iter"

	"github.com/doyen-election/doyen/election"
)

// Facts are what a contest asks about its agent and the other agents. The answers do not change
// during a step of the contest.
type Facts interface {
	Now() election.Instant
	Roster() *election.Roster // the one on disk; nil before genesis

	// Obstacle is why this agent can't be elected in any election; 0: it can.
	Obstacle() election.Obstacle
	Doubts() bool // this agent has run late, or is the last resort: it does not see other such agents among the candidates
	Writes() bool // this agent's disk accepts the promises of its voter
	Full() bool   // this agent has as many rounds and bids in progress as it may have
	Closed() bool // no round may start now: a new one has to wait in this agent's queue
	// Informed reports whether enough agents have reported for this agent to know that nobody
	// leads. If not, it returns when to call it again if no report arrives earlier.
	Informed() (bool, election.Instant)
	// FirstTurn is the earliest instant at which this agent may seek the first leader.
	FirstTurn() election.Instant

	// About this agent's own voter: the grant on record, the end of its promise, and the end of its hold. A hold
	// is a promise from before a start or a suspend, which keeps the voter from voting for its own agent.
	Granted() election.Grant
	PromiseEnd() election.Instant
	HoldEnd() election.Instant

	// Candidates are the other candidates that can be elected, in any order. Best is the best of
	// those that have not just stepped down.
	Candidates() iter.Seq[election.Rank]
	Best() election.Rank
	Connected() []election.PeerID      // sorted
	Runs(election.Holder) bool         // the agent of this holder is connected, or a voter has named it
	ConnectsBy() election.Instant      // until then, connections to some agents may still be missing
	Silent(election.PeerID) bool       // the agent has not answered for too long
	Votes(election.PeerID) bool        // the agent is a voter, or will be one by a roster that is being written
	Reachable(election.PeerID) bool    // the agent can be asked for its vote: connected, not silent, able to write
	StopsSoon(election.PeerID) bool    // the agent is shutting down
	SharesRoster(election.PeerID) bool // the agent has the present roster
	// SuspectAt is when a leader counts as lost if nothing more is heard of it.
	SuspectAt(election.PeerID) election.Instant
}

// Verdict is what a contest asks its caller to do after one step, at once.
type Verdict struct {
	StepDown []election.Withdrawal
	Remember election.Term       // without quorum: the term that this agent now leads, to be written; 0: none
	Send     []election.Envelope // the caller numbers the Vote Requests
	Announce []election.Announcement
	Replies  []election.Reply
	WakeAt   election.Instant // when Advance is to be called
	Again    bool             // Advance is to be called at once, whatever WakeAt says
	Queue    bool             // this agent's round waits for its turn
	Beat     bool             // send a heartbeat at once
	Won      bool             // this agent has become the leader
	Late     bool             // a bid was given up that no voter had answered, or a vote arrived after that
	Expired  election.PeerID  // this agent has seen the lease of this leader expire
}

// Counts are how often events happened in all contests of an agent. They only rise.
type Counts struct {
	Rounds        uint64 // rounds of selection started
	Attempts      uint64 // bids started
	TermsWon      uint64
	LeasesExpired uint64
	Suspicions    uint64
	TermLeaps     uint64 // terms that were not believed, because they were too high
}

// step is one call of a contest: the facts, and the verdict so far.
type step struct {
	Facts
	now    election.Instant
	roster *election.Roster
	out    Verdict
}

// begin returns its receiver, so that new(step).begin needs no allocation.
func (s *step) begin(c *Contest, f Facts) *step {
	c.begun = c.begun && c.selection.Active()
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
