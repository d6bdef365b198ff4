package virtual

import (
	"slices"
	"strings"

	"github.com/doyen-election/doyen/election"
)

// Recorded returns the record after `added` was written over `before`. It shares no data with before, which
// another run may still use.
func Recorded(before election.LifeRecord, added *election.LifeRecord) election.LifeRecord {
	r := election.LifeRecord{Retired: added.Retired, Spent: added.Spent, Shortest: added.Shortest, Rows: slices.Clone(before.Rows)}
	for _, row := range added.Rows {
		i, found := slices.BinarySearchFunc(r.Rows, row.Election, func(a election.Authority, name election.Name) int {
			return strings.Compare(string(a.Election), string(name))
		})
		switch {
		case found && row.Highest == 0: // this row makes the record forget the election
			r.Rows = slices.Delete(r.Rows, i, i+1)
		case found:
			r.Rows[i] = row
		case row.Highest != 0:
			r.Rows = slices.Insert(r.Rows, i, row)
		}
	}
	return r
}
