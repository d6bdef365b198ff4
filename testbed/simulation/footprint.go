package simulation

import (
	"reflect"
)

// maxFootprint bounds the elements of all slices and maps that an elector keeps at the end of a
// run, per agent of the cluster and per election. An elector that fails to forget what it
// should goes beyond that.
const maxFootprint = 400

// checkFootprints checks that no elector has grown beyond the bound.
func (w *world) checkFootprints() {
	if w.violation != nil || w.options.Seed%8 != 0 {
		return // to count them all costs as much as some hundred steps
	}
	most := maxFootprint * len(w.agents) * len(w.logs)
	for _, a := range w.agents {
		if !a.alive {
			continue
		}
		n := footprint(reflect.ValueOf(a.elector), map[uintptr]bool{})
		w.stats.Footprint = max(w.stats.Footprint, n/(len(w.agents)*len(w.logs)))
		if n > most {
			w.fail("memory", "the elector of %s keeps %d elements after %d steps, %d are plenty", a.peer, n, w.stats.Steps, most)
		}
	}
}

// footprint counts the elements of all slices and maps reachable from v.
func footprint(v reflect.Value, seen map[uintptr]bool) int {
	n := 0
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return 0
		}
		seen[v.Pointer()] = true
		return footprint(v.Elem(), seen)
	case reflect.Interface:
		if !v.IsNil() {
			return footprint(v.Elem(), seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += footprint(v.Field(i), seen)
		}
	case reflect.Slice:
		n = v.Cap()
		fallthrough
	case reflect.Array:
		if k := v.Type().Elem().Kind(); k < reflect.Array && k != reflect.Uintptr {
			return n // numbers
		}
		for i := range v.Len() {
			n += footprint(v.Index(i), seen)
		}
	case reflect.Map:
		n = v.Len()
		for i := v.MapRange(); i.Next(); {
			n += footprint(i.Value(), seen)
		}
	}
	return n
}
