package agent

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/leasepage"
	"github.com/doyen-election/doyen/internal/keeper"
)

// reasonRestarted is the reason of the entries that begin the history of a later life.
const reasonRestarted = "agent restarted"

// recordEvery is how often the loop looks whether the record's file is still there.
const recordEvery = time.Minute

// recordGone is the warning that it is not.
const recordGone = "the file of the record was removed or replaced, so a restart of this agent costs a lease: keep others from its directory, and restart the agent, which makes a new one: doyen restart hands over first"

// openRecord begins this life: from the record of the former life, or as the first life of a
// new lineage. An agent runs without a record too, but then its restart costs a lease.
func (a *agent) openRecord() {
	born := time.Now().UnixNano()
	var problem error
	a.record, a.past, problem = record.Open(record.Config{
		Path: record.Path(a.cfg.RecordDir, a.cfg.Socket, a.cfg.Name),
		Peer: a.store.Peer(), Run: a.runID, Born: born, Lease: a.cfg.Lease,
	})
	switch {
	case problem == nil:
	case a.record == nil:
		a.noRecord = problem.Error()
	default:
		a.logger.Warn(problem.Error())
	}
	if a.lineage = a.record.Lineage(); a.record == nil {
		a.lineage = election.Lineage{ID: election.LineageID(a.runID), Life: 1, JoinedAt: born, Lease: a.cfg.Lease}
	}
	if a.record != nil && a.past == nil && problem == nil {
		a.logger.Info("no former life has left a record: a new lineage begins", "lineage", a.lineage.ID)
	}
	if a.past != nil {
		a.logger.Info("going on as the agent that ran before", "lineage", a.lineage.ID, "life", a.lineage.Life, "leads", len(ledOn(a.past)))
	}
}

// ledOn returns the elections that a life with this past goes on leading under a lease.
func ledOn(past *record.Past) map[election.Name]bool {
	led := map[election.Name]bool{}
	if past == nil {
		return led
	}
	for _, row := range past.Rows {
		if row.Term != 0 && row.Ending.Reason == "" && row.Until != election.Never && row.Election != election.RosterElection {
			led[row.Election] = true
		}
	}
	return led
}

func knownVoters(past *record.Past) []record.Voter {
	if past == nil {
		return nil
	}
	return past.Voters
}

// putOnRecord records what a step has changed, before anybody sees the step's output (K1).
func (l *loop) putOnRecord(changed *election.LifeRecord) { l.kept(l.record.Write(changed)) }

// kept handles the outcome of a write to the record.
func (l *loop) kept(err error) {
	if err != nil {
		l.noRecord = "no record is kept any more, so a restart of this agent costs a lease: " + err.Error()
	}
}

// lookForRecord notices if somebody has removed or replaced the record's file. This life goes on
// without one, but a next life could not.
func (l *loop) lookForRecord(now election.Instant) {
	if now < l.recordDue {
		return
	}
	l.recordDue = election.Never
	if l.record == nil {
		return
	}
	l.recordDue = now.Add(recordEvery)
	switch kept := l.record.Kept(); {
	case !kept && l.noRecord == "":
		l.noRecord = recordGone
	case kept && l.noRecord == recordGone:
		l.noRecord = ""
	default:
		return
	}
	l.publish(now)
}

// enterRestart begins the history, and the watches that resume, with what this life goes on
// leading. Programs and operators see the restart nowhere else.
func (l *loop) enterRestart(now election.Instant) {
	if l.past == nil {
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
		if why := l.life.Why(); why != "" {
			entry.Evidence = "the process before: " + why
		}
		if leads {
			l.led = true
			entry.Leader, entry.Term = picture.Leader(l.self.Peer), uint64(c.Term)
		}
		l.history.Add(entry)
		l.hub.Publish(api.Change{Time: at, Type: entry.Type, Election: entry.Election, Leader: entry.Leader, IsLeader: leads,
			Term: entry.Term, Reason: entry.Reason, BoottimeNS: entry.BoottimeNS})
	}
}

// recordVoters puts on record where the other voters are, as far as that is known.
func (l *loop) recordVoters() {
	if l.roster == nil {
		return
	}
	var voters []record.Voter
	for _, m := range l.presence.members {
		if l.roster.Has(m.Peer) && m.Peer != l.self.Peer {
			voters = append(voters, record.Voter{Peer: m.Peer, Gossip: m.GossipAddr, Stream: m.PeerAddr})
		}
	}
	for _, was := range slices.Concat(l.known, l.recorded) { // a voter that is away may be back before the next life
		same := func(v record.Voter) bool { return v.Peer == was.Peer }
		if l.roster.Has(was.Peer) && was.Peer != l.self.Peer && !slices.ContainsFunc(voters, same) {
			voters = append(voters, was)
		}
	}
	slices.SortFunc(voters, func(a, b record.Voter) int { return cmp.Compare(a.Peer, b.Peer) })
	if slices.Equal(voters, l.recorded) {
		return
	}
	l.recorded = voters
	l.kept(l.record.SetVoters(voters))
}

// known is what the keeper needs to know if this life ends.
func (a *agent) known() keeper.Known {
	k := keeper.Known{Lock: store.LockOf(a.cfg.DataDir), Pages: leasepage.Dir(a.cfg.Socket), Peer: string(a.store.Peer())}
	if cfg := a.settings.Load(); cfg.Act && cfg.Acts() {
		k.Act = a.around.ActArgs
	}
	if a.record != nil {
		k.Record = record.Path(a.cfg.RecordDir, a.cfg.Socket, a.cfg.Name)
	}
	return k
}
