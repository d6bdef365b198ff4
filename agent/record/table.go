package record

import (
	"cmp"
	"errors"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// table is what the present life knows of the record's rows.
//
// Invariant: used is sorted by election, and each row is either in used or in free.
type table struct {
	used []row
	free []row
}

// newTable writes all rows as free ones.
func newTable(m memory, seed uint64) (t table) {
	t.free = make([]row, 0, rows)
	for slot := range rows {
		r := newRow(slot, seed)
		r.storeActors(m, &Actors{})
		r.storeAuthority(m, &election.Authority{})
		t.free = append(t.free, r)
	}
	return t
}

// readTable reads all rows. If one is damaged, nobody knows which election is missing, so the
// whole table is refused (K7).
func readTable(m memory, seed uint64) (t table, err error) {
	t.free = make([]row, 0, rows)
	for slot := range rows {
		r := newRow(slot, seed)
		if !r.load(m) {
			return t, errDamaged
		}
		if r.last.Highest == 0 {
			t.free = append(t.free, r)
		} else {
			t.used = append(t.used, r)
		}
	}
	slices.SortFunc(t.used, func(a, b row) int { return cmp.Compare(a.name, b.name) })
	for i := 1; i < len(t.used); i++ {
		if t.used[i].name == t.used[i-1].name {
			return t, errDamaged
		}
	}
	return t, nil
}

func (t *table) find(name election.Name) (int, bool) {
	return slices.BinarySearchFunc(t.used, name, func(r row, n election.Name) int { return cmp.Compare(r.name, n) })
}

// write puts an authority on record. i is the index in the table where its row is likely to
// be; write returns the likely index of the next one.
func (t *table) write(m memory, i int, a *election.Authority) (int, error) {
	if i >= len(t.used) || t.used[i].name != a.Election {
		found := false
		if i, found = t.find(a.Election); !found {
			if a.Highest == 0 {
				return i, nil
			}
			if err := t.add(m, i, a.Election); err != nil {
				return i, err
			}
		}
	}
	r := &t.used[i]
	if a.Until == r.last.Until && *a == r.last {
		return i + 1, nil
	}
	r.storeAuthority(m, a)
	if a.Highest == 0 {
		t.free = append(t.free, *r)
		t.used = slices.Delete(t.used, i, i+1)
		return i, nil
	}
	return i + 1, nil
}

var errFull = errors.New("there is no room for another election")

// add takes a free row for an election, and puts it at index i of the table.
func (t *table) add(m memory, i int, name election.Name) error {
	n := len(t.free) - 1
	if n < 0 || len(name) > maxText {
		return errFull
	}
	r := t.free[n]
	if r.acting != (Actors{}) {
		r.storeActors(m, &Actors{}) // what the row's former election left
	}
	r.call(m, name)
	t.free, t.used = t.free[:n], slices.Insert(t.used, i, r)
	return nil
}
