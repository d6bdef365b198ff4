package exhaustive

import (
	"iter"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// This file has the facts that a contest is given (contest.Facts).

func (p *process) Now() election.Instant        { return p.now }
func (p *process) Roster() *election.Roster     { return p.roster }
func (p *process) Writes() bool                 { return true }
func (p *process) Full() bool                   { return false }
func (p *process) Closed() bool                 { return false }
func (p *process) Doubts() bool                 { return false }
func (p *process) FirstTurn() election.Instant  { return 0 }
func (p *process) Granted() election.Grant      { return p.ledger.State().Grant(election.Default) }
func (p *process) PromiseEnd() election.Instant { return p.voter.PromiseEnd(election.Default) }
func (p *process) HoldEnd() election.Instant    { return p.voter.HoldEnd(election.Default, p.self) }
func (p *process) Best() election.Rank          { return election.Rank{} } // nobody is preempted
func (p *process) Runs(h election.Holder) bool {
	return h.Lineage != 0 && p.peer(h.Peer).boot == h.Lineage
}
func (p *process) ConnectsBy() election.Instant                  { return 0 } // no agent has started recently
func (p *process) Silent(id election.PeerID) bool                { return p.now >= p.peer(id).silentFrom() }
func (p *process) Votes(election.PeerID) bool                    { return true }
func (p *process) StopsSoon(election.PeerID) bool                { return false }
func (p *process) SharesRoster(election.PeerID) bool             { return true }
func (p *process) SuspectAt(id election.PeerID) election.Instant { return p.peer(id).overdueAt }

func (p *process) Reachable(id election.PeerID) bool {
	return id == p.self.Peer || p.peer(id).boot != 0 && !p.Silent(id)
}

func (p *process) Obstacle() election.Obstacle {
	if !quorum.Confirmed(p.roster, p.Reachable) {
		return election.CutOff
	}
	return 0
}

func (p *process) Informed() (bool, election.Instant) {
	return quorum.Confirmed(p.roster, func(id election.PeerID) bool {
		return id == p.self.Peer || p.peer(id).reported
	}), election.Never // a Report ends the wait
}

func (p *process) Connected() []election.PeerID {
	var ids []election.PeerID
	for i, o := range p.peers {
		if o.boot != 0 {
			ids = append(ids, peerOf(i))
		}
	}
	return ids
}

// Candidates returns the connected agents that are not silent. The last agent is never a candidate.
func (p *process) Candidates() iter.Seq[election.Rank] {
	return func(yield func(election.Rank) bool) {
		for i, o := range p.peers[:size-1] {
			r := election.Rank{Priority: election.DefaultPriority, JoinedAt: int64(o.boot), Peer: peerOf(i)}
			if o.boot != 0 && o.boot == o.listed && !p.Silent(r.Peer) && !yield(r) {
				return
			}
		}
	}
}
