package elector

import (
	"cmp"
	"slices"
)

// table is a map whose rows are walked in the order of their keys, without sorting at each walk.
// So equal inputs give equal outputs.
//
// Invariant: keys are sorted, and rows[i] and byKey[keys[i]] belong to keys[i].
type table[K cmp.Ordered, V any] struct {
	keys  []K
	rows  []V
	byKey map[K]V
}

func (t *table[K, V]) get(key K) V { return t.byKey[key] }

func (t *table[K, V]) has(key K) bool {
	_, has := t.byKey[key]
	return has
}

// put sets the row of a key. A walk in progress does not come to a key that is new.
func (t *table[K, V]) put(key K, row V) {
	if t.byKey == nil {
		t.byKey = map[K]V{}
	}
	t.byKey[key] = row
	i, ok := slices.BinarySearch(t.keys, key)
	if ok {
		t.rows[i] = row
		return
	}
	t.keys = slices.Insert(slices.Clone(t.keys), i, key)
	t.rows = slices.Insert(slices.Clone(t.rows), i, row)
}

// remove drops a key. A walk in progress still comes to it.
func (t *table[K, V]) remove(key K) {
	delete(t.byKey, key)
	if i, ok := slices.BinarySearch(t.keys, key); ok {
		t.keys = slices.Delete(slices.Clone(t.keys), i, i+1)
		t.rows = slices.Delete(slices.Clone(t.rows), i, i+1)
	}
}
