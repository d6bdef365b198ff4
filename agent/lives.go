package agent

import (
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/leasepage"
	"github.com/doyen-election/doyen/internal/keeper"
)

// openRecord makes this life continue from the record of the former life, or begin a new lineage as its first
// life. An agent can run without a record, but then its restart costs a lease.
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

// ledOn returns the elections for which the former life has left a lease: this life goes on leading them.
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

// known is what the keeper needs to know in case this life ends.
func (a *agent) known() keeper.Known {
	cfg := a.settings.Load()
	k := keeper.Known{Pages: leasepage.Dir(cfg.Socket), Peer: string(a.store.Peer()), Act: cfg.Act && cfg.Acts()}
	if a.record != nil {
		k.Record = record.Path(cfg.RecordDir, cfg.Socket, cfg.Name)
	}
	return k
}
