package loop

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/each"
)

// reasonRestarted is the reason of the first entries in the history of a later life.
const reasonRestarted = "agent restarted"

// enterRestart adds the restart to the history, and sends it to the watches that resume: one entry for each
// election that this life goes on leading, and one for the default election.
func (l *Loop) enterRestart(now election.Instant) {
	if l.Past == nil {
		return
	}
	picture := l.picture.Load()
	at := time.Now().UTC()
	contests := picture.Status.Contests
	if !slices.ContainsFunc(contests, func(c *elector.ContestStatus) bool { return c.Election == election.Default }) {
		contests = append(slices.Clone(contests), &elector.ContestStatus{Election: election.Default}) // the default election is not known yet
	}
	for _, c := range contests {
		leads := l.holds(c)
		if !leads && c.Election != election.Default {
			continue
		}
		entry := api.Transition{Time: at, Election: string(c.Election), Type: api.ChangeRestarted, Reason: reasonRestarted, BoottimeNS: int64(now)}
		if why := l.Life.Why(); why != "" {
			entry.Evidence = "the process before: " + why
		}
		if leads {
			l.led = true
			entry.Leader, entry.Term = picture.Leader(l.Self.Peer), uint64(c.Term)
		}
		l.History.Add(entry)
		l.Hub.Publish(api.Change{Time: at, Type: entry.Type, Election: entry.Election, Leader: entry.Leader, IsLeader: leads,
			Term: entry.Term, Reason: entry.Reason, BoottimeNS: entry.BoottimeNS})
	}
}

// votersToReach returns the known addresses of the other voters. It includes the voters on record (were): one that is
// absent now may be back before the next life.
func (l *Loop) votersToReach(were []record.Voter) []record.Voter {
	voters := each.Of(l.presence.members, func(m present) record.Voter {
		return record.Voter{Peer: m.Peer, Gossip: m.GossipAddr, Stream: m.PeerAddr}
	})
	voters = append(voters, were...)
	slices.SortStableFunc(voters, func(a, b record.Voter) int { return cmp.Compare(a.Peer, b.Peer) })
	voters = slices.CompactFunc(voters, func(a, b record.Voter) bool { return a.Peer == b.Peer })
	return slices.DeleteFunc(voters, func(v record.Voter) bool { return !l.roster.Has(v.Peer) || v.Peer == l.Self.Peer })
}
