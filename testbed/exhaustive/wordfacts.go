package exhaustive

import (
	"iter"

	"github.com/doyen-election/doyen/election"
)

// wordFacts are the facts of a contest in a wordWorld: all voters can be reached, and time does not pass.
type wordFacts struct{ w *wordWorld }

func (f wordFacts) Now() election.Instant                    { return epoch }
func (f wordFacts) Roster() *election.Roster                 { return f.w.roster }
func (wordFacts) Obstacle() election.Obstacle                { return 0 }
func (wordFacts) Doubts() bool                               { return false }
func (wordFacts) Writes() bool                               { return true }
func (wordFacts) Full() bool                                 { return false }
func (wordFacts) Closed() bool                               { return false }
func (wordFacts) Informed() (bool, election.Instant)         { return true, election.Never }
func (wordFacts) FirstTurn(election.Rank) election.Instant   { return 0 }
func (wordFacts) Granted() election.Grant                    { return election.Grant{} }
func (wordFacts) PromiseEnd() election.Instant               { return 0 }
func (wordFacts) HoldEnd() election.Instant                  { return 0 }
func (wordFacts) Candidates() iter.Seq[election.Rank]        { return func(func(election.Rank) bool) {} }
func (wordFacts) Best() election.Rank                        { return election.Rank{} }
func (wordFacts) Connected() []election.PeerID               { return wordVoters[:] }
func (wordFacts) Runs(election.Holder) bool                  { return false }
func (wordFacts) ConnectsBy() election.Instant               { return 0 }
func (wordFacts) Silent(election.PeerID) bool                { return false }
func (wordFacts) Votes(election.PeerID) bool                 { return true }
func (wordFacts) Reachable(election.PeerID) bool             { return true }
func (wordFacts) StopsSoon(election.PeerID) bool             { return false }
func (wordFacts) SharesRoster(election.PeerID) bool          { return true }
func (wordFacts) SuspectAt(election.PeerID) election.Instant { return election.Never }

// chosen is a selection that has chosen its agent.
type chosen struct{}

func (chosen) Start(election.Instant, election.Field) election.Verdict {
	return election.Verdict{Nominee: true, WakeAt: election.Never}
}
func (c chosen) Tick(now election.Instant, f election.Field) election.Verdict { return c.Start(now, f) }
func (c chosen) Receive(now election.Instant, f election.Field, _ election.PeerID, _ election.Message) election.Verdict {
	return c.Start(now, f)
}
func (chosen) Nominated(election.Field, func(election.PeerID) bool) []election.Envelope { return nil }
func (chosen) Confirmed(election.Field, election.Leadership) []election.Envelope        { return nil }
func (chosen) StandBack(election.Instant, election.Field, election.Rank)                {}
func (chosen) Stop()                                                                    {}
func (chosen) Active() bool                                                             { return false }
