package loop

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// reasonRestarted is the reason of the entries that begin the history of a later life.
const reasonRestarted = "agent restarted"

// recordEvery is how often the loop looks whether the record's file is still there.
const recordEvery = time.Minute

// recordGone is the warning that it is not.
const recordGone = "the file of the record was removed or replaced, so a restart of this agent costs a lease: keep others from its directory, and restart the agent, which makes a new one: doyen restart hands over first"

// putOnRecord records what a step has changed, before anybody sees the step's output (K1).
func (l *Loop) putOnRecord(changed *election.LifeRecord) { l.kept(l.Record.Write(changed)) }

// kept handles the outcome of a write to the record.
func (l *Loop) kept(err error) {
	if err != nil {
		l.NoRecord = "no record is kept any more, so a restart of this agent costs a lease: " + err.Error()
	}
}

// lookForRecord notices if somebody has removed or replaced the record's file. This life goes on
// without one, but a next life could not.
func (l *Loop) lookForRecord(now election.Instant) {
	if now < l.recordDue {
		return
	}
	l.recordDue = election.Never
	if l.Record == nil {
		return
	}
	l.recordDue = now.Add(recordEvery)
	switch kept := l.Record.Kept(); {
	case !kept && l.NoRecord == "":
		l.NoRecord = recordGone
	case kept && l.NoRecord == recordGone:
		l.NoRecord = ""
	default:
		return
	}
	l.publish(now)
}

// enterRestart begins the history, and the watches that resume, with what this life goes on
// leading. Programs and operators see the restart nowhere else.
func (l *Loop) enterRestart(now election.Instant) {
	if l.Past == nil {
		return
	}
	picture := l.picture.Load()
	at := time.Now().UTC()
	contests := picture.Status.Contests
	if !slices.ContainsFunc(contests, func(c *elector.ContestStatus) bool { return c.Election == election.Default }) {
		contests = append(slices.Clone(contests), &elector.ContestStatus{Election: election.Default}) // not heard of yet
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

// recordVoters puts on record where the other voters are, as far as that is known.
func (l *Loop) recordVoters() {
	if l.roster == nil {
		return
	}
	var voters []record.Voter
	for _, m := range l.presence.members {
		if l.roster.Has(m.Peer) && m.Peer != l.Self.Peer {
			voters = append(voters, record.Voter{Peer: m.Peer, Gossip: m.GossipAddr, Stream: m.PeerAddr})
		}
	}
	for _, was := range slices.Concat(l.Known, l.recorded) { // a voter that is away may be back before the next life
		same := func(v record.Voter) bool { return v.Peer == was.Peer }
		if l.roster.Has(was.Peer) && was.Peer != l.Self.Peer && !slices.ContainsFunc(voters, same) {
			voters = append(voters, was)
		}
	}
	slices.SortFunc(voters, func(a, b record.Voter) int { return cmp.Compare(a.Peer, b.Peer) })
	if slices.Equal(voters, l.recorded) {
		return
	}
	l.recorded = voters
	l.kept(l.Record.SetVoters(voters))
}
