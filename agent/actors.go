package agent

import (
	"maps"
	"time"

	"github.com/doyen-election/doyen/agent/campaign"
	"github.com/doyen-election/doyen/agent/proof"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
)

// actors puts on record what acts under this agent's terms. The loop owns it.
type actors struct {
	write func(election.Name, record.Actors) error
	rows  map[election.Name]record.Actors
}

// newActors starts from what an earlier life recorded.
func newActors(past *record.Past, write func(election.Name, record.Actors) error) *actors {
	a := &actors{write: write, rows: map[election.Name]record.Actors{}}
	if past != nil {
		maps.Copy(a.rows, past.Actors)
	}
	return a
}

func (a *actors) program(name election.Name, p record.Program) {
	a.change(name, func(row *record.Actors) { row.Program = p })
}

func (a *actors) companion(name election.Name, p record.Program) {
	a.change(name, func(row *record.Actors) { row.Companion = p })
}

// maxRows bounds actors.rows: twice as many elections as an agent holds.
const maxRows = 2 * election.MaxElections

// change writes one row. A write that fails ends the lineage; the record's owner reports that.
func (a *actors) change(name election.Name, f func(*record.Actors)) {
	if len(a.rows) > maxRows {
		maps.DeleteFunc(a.rows, func(_ election.Name, row record.Actors) bool {
			return row.Program.Told <= row.Program.Stopped && row.Companion.Told <= row.Companion.Stopped
		})
	}
	row := a.rows[name]
	f(&row)
	a.rows[name] = row
	_ = a.write(name, row)
}

// ledBefore returns the rows of an earlier life that the registry goes on from, without the
// roster's election, which no life goes on leading (K8). The term is 0 where the elector does
// not lead on, since the leadership began under the other setting of --quorum.
func ledBefore(past *record.Past, quorum bool) []campaign.Past {
	if past == nil {
		return nil
	}
	var all []campaign.Past
	for _, row := range past.Rows {
		if row.Ending.Reason == "" && (row.Until == election.Never) == quorum {
			row.Term = 0
		}
		if row.Election != election.RosterElection {
			acts := past.Actors[row.Election]
			all = append(all, campaign.Past{Authority: row, Program: acts.Program, Companion: acts.Companion})
		}
	}
	return all
}

// proveAbsent waits for the end of programs that an earlier life elected and that have not
// resumed yet.
func (l *loop) proveAbsent() {
	programs, until := l.campaigns.Absent()
	if len(programs) == 0 {
		return
	}
	go func() { // asking the kernel about a thousand programs would delay the first heartbeat
		for i, p := range programs {
			if p.Sockets[0] == 0 {
				continue // no socket of it is on record, so its end would prove nothing
			}
			process, err := proof.Recorded(p)
			if err != nil {
				l.logger.Info("a program that led can't be proven to have ended: if it does not resume, its successor waits for the end of the lease", "campaign", p.Campaign, "err", err)
				continue
			}
			go l.proveEnd(p.Campaign, process, until[i])
		}
	}()
}

func (l *loop) proveEnd(id string, process *proof.Process, until election.Instant) {
	defer process.Close()
	deadline := time.NewTimer(until.Sub(l.clock()))
	defer deadline.Stop()
	select {
	case <-process.Gone():
	case <-deadline.C:
		return
	case <-l.done:
		return
	}
	if process.Alone() {
		l.logger.Info("the program that led has exited", "campaign", id)
		l.call(func(election.Instant) { l.campaigns.Dead(id) })
	}
}
