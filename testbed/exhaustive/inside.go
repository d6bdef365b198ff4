package exhaustive

import (
	"reflect"
	"unsafe"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/quorum"
)

// inside returns the unexported field of an elector.
func inside(e *elector.Elector, name string) reflect.Value {
	return reflect.ValueOf(e).Elem().FieldByName(name)
}

func sendsOf(e *elector.Elector) *quorum.Sends {
	return (*quorum.Sends)(inside(e, "sends").UnsafePointer())
}

// firstBeat is the first send that claimed the term led or left.
func firstBeat(e *elector.Elector) election.SendID {
	contests := inside(e, "contests")
	keys := contests.FieldByName("keys")
	for i := range keys.Len() {
		if keys.Index(i).String() == string(election.Default) {
			if held := contests.FieldByName("rows").Index(i).Elem().FieldByName("Contest").Elem().FieldByName("held"); !held.IsNil() {
				return election.SendID(held.Elem().FieldByName("firstBeat").Uint())
			}
		}
	}
	return 0
}

func durableOf(e *elector.Elector) uint64 {
	return inside(e, "ledger").Elem().FieldByName("durable").Uint()
}

func (e *encoder) elector(x *elector.Elector) {
	e.value(reflect.TypeFor[elector.Elector](), unsafe.Pointer(x))
}

func (e *encoder) message(m election.Message) {
	e.value(reflect.TypeFor[election.Message](), unsafe.Pointer(&m))
}
