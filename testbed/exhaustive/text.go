package exhaustive

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// same are the types that never differ between worlds, or follow from the rest.
var same = []reflect.Type{
	reflect.TypeFor[contest.Config](), reflect.TypeFor[quorum.VoterConfig](),
	reflect.TypeFor[election.Roster](), reflect.TypeFor[election.Rank](), // follows from the holder
	reflect.TypeFor[election.State](), // a ledger's is written apart
}

// text writes a value and all that it refers to, as agent i holds it.
func (w *world) text(b []byte, i int, v reflect.Value) []byte {
	switch v.Type() {
	case reflect.TypeFor[election.Instant]():
		return fmt.Appendln(b, w.ago(i, election.Instant(v.Int())))
	case reflect.TypeFor[election.SendID]():
		return fmt.Appendln(b, v.Uint() != 0)
	case reflect.TypeFor[election.VoteRequest](), reflect.TypeFor[election.VoteGrant]():
		boot := v.FieldByName("Holder").FieldByName("Boot").Uint()
		b = fmt.Appendln(b, w.worth(election.BootID(boot), election.SendID(v.FieldByName("Send").Uint())))
	}
	if slices.Contains(same, v.Type()) {
		return b
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(b, "nil\n"...)
		}
		return w.text(b, i, v.Elem())
	case reflect.Struct:
		b = append(append(b, v.Type().Name()...), '\n')
		for _, f := range v.Fields() {
			b = w.text(b, i, f)
		}
	case reflect.Slice:
		b = fmt.Appendln(b, v.Len())
		for j := range v.Len() {
			b = w.text(b, i, v.Index(j))
		}
	case reflect.Map: // by name or peer
		b = fmt.Appendln(b, v.Len())
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return cmp.Compare(x.String(), y.String()) })
		for _, k := range keys {
			b = w.text(fmt.Appendln(b, k), i, v.MapIndex(k))
		}
	default:
		b = fmt.Appendln(b, v)
	}
	return b
}
