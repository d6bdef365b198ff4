package actors

import (
	"maps"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
)

// OnRecord puts on record what acts under this agent's terms. The loop owns it.
type OnRecord struct {
	write func(election.Name, record.Actors) error
	rows  map[election.Name]record.Actors
}

// NewOnRecord starts from what an earlier life recorded.
func NewOnRecord(past *record.Past, write func(election.Name, record.Actors) error) *OnRecord {
	a := &OnRecord{write: write, rows: map[election.Name]record.Actors{}}
	if past != nil {
		maps.Copy(a.rows, past.Actors)
	}
	return a
}

func (a *OnRecord) Program(name election.Name, p record.Program) {
	a.change(name, func(row *record.Actors) { row.Program = p })
}

func (a *OnRecord) Companion(name election.Name, p record.Program) {
	a.change(name, func(row *record.Actors) { row.Companion = p })
}

// maxRows bounds OnRecord.rows: twice as many elections as an agent holds.
const maxRows = 2 * election.MaxElections

// change writes one row. A write that fails ends the lineage; the record's owner reports that.
func (a *OnRecord) change(name election.Name, f func(*record.Actors)) {
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

// Before returns the rows of an earlier life that the registry goes on from, without the
// roster's election, which no life goes on leading (K8). The term is 0 where the elector does
// not lead on, since the leadership began under the other setting of --quorum.
func Before(past *record.Past, quorum bool) []Past {
	if past == nil {
		return nil
	}
	var all []Past
	for _, row := range past.Rows {
		if row.Ending.Reason == "" && (row.Until == election.Never) == quorum {
			row.Term = 0
		}
		if row.Election != election.RosterElection {
			acts := past.Actors[row.Election]
			all = append(all, Past{Authority: row, Program: acts.Program, Companion: acts.Companion})
		}
	}
	return all
}
