package exhaustive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/doyen-election/doyen/election"
)

// encoder writes what of a world can matter to its future, so that two worlds
// with the same encoding behave the same for ever. It compiles each type once,
// and is not safe for concurrent use.
type encoder struct {
	buf   []byte
	types map[reflect.Type]encode
	rules map[string]encode // of fields, by type and name
	spare [][]byte          // for the entries of maps

	world    *world
	owner    int              // whose clock and sends unexported state refers to
	from, to int              // of the message being encoded
	peer     int              // the key of the innermost map by peer
	durable  uint64           // the newest change on the owner's disk
	slack    election.Instant // how far in the past an instant still matters
}

// encode appends one value.
type encode func(e *encoder, p unsafe.Pointer)

func newEncoder() *encoder {
	return &encoder{types: special(), rules: fieldRules(), slack: election.Instant(2 * timing.Lease)}
}

func (e *encoder) number(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }
func (e *encoder) signed(n int64)  { e.buf = binary.AppendVarint(e.buf, n) }
func (e *encoder) truth(b bool) {
	if b {
		e.buf = append(e.buf, 1)
		return
	}
	e.buf = append(e.buf, 0)
}

func (e *encoder) text(s string) {
	e.number(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// value appends the value of that type at p.
func (e *encoder) value(t reflect.Type, p unsafe.Pointer) {
	if f := e.encodeOf(t); f != nil {
		f(e, p)
	}
}

func (e *encoder) encodeOf(t reflect.Type) encode {
	if f, ok := e.types[t]; ok {
		return f
	}
	var compiled encode
	e.types[t] = func(e *encoder, p unsafe.Pointer) { compiled(e, p) } // for types that refer to themselves
	compiled = e.compile(t)
	e.types[t] = compiled
	return compiled
}

func (e *encoder) compile(t reflect.Type) encode {
	switch t.Kind() {
	case reflect.Bool:
		return func(e *encoder, p unsafe.Pointer) { e.truth(*(*bool)(p)) }
	case reflect.Int, reflect.Int64:
		return func(e *encoder, p unsafe.Pointer) { e.signed(*(*int64)(p)) }
	case reflect.Uint64:
		return func(e *encoder, p unsafe.Pointer) { e.number(*(*uint64)(p)) }
	case reflect.Uint8:
		return func(e *encoder, p unsafe.Pointer) { e.buf = append(e.buf, *(*uint8)(p)) }
	case reflect.String:
		return func(e *encoder, p unsafe.Pointer) { e.text(*(*string)(p)) }
	case reflect.Pointer:
		return e.pointer(t.Elem())
	case reflect.Slice:
		return e.slice(t)
	case reflect.Map:
		return e.mapping(t)
	case reflect.Interface:
		return dynamic(t)
	case reflect.Struct:
		if keys, ok := t.FieldByName("keys"); ok && keys.Type == reflect.TypeFor[[]election.PeerID]() {
			return e.byPeer(t)
		}
		return e.structure(t)
	default:
		panic(fmt.Sprintf("encode: no rule for %s", t)) // the types are known when this is written
	}
}

func (e *encoder) pointer(elem reflect.Type) encode {
	inner := e.encodeOf(elem)
	return func(e *encoder, p unsafe.Pointer) {
		at := *(*unsafe.Pointer)(p)
		e.truth(at != nil)
		if at != nil && inner != nil {
			inner(e, at)
		}
	}
}

func (e *encoder) slice(t reflect.Type) encode {
	inner, size := e.encodeOf(t.Elem()), t.Elem().Size()
	return func(e *encoder, p unsafe.Pointer) {
		v := *(*[]byte)(p) // of any slice: where it is and how long, which is all that is read
		e.number(uint64(len(v)))
		for i := 0; inner != nil && i < len(v); i++ {
			inner(e, unsafe.Add(unsafe.Pointer(unsafe.SliceData(v)), uintptr(i)*size))
		}
	}
}

// mapping encodes the entries in the order of their encodings.
func (e *encoder) mapping(t reflect.Type) encode {
	key, inner := e.encodeOf(t.Key()), e.encodeOf(t.Elem())
	byPeer := t.Key() == reflect.TypeFor[election.PeerID]()
	return func(e *encoder, p unsafe.Pointer) {
		if *(*unsafe.Pointer)(p) == nil {
			e.number(0)
			return
		}
		v := reflect.NewAt(t, p).Elem()
		if e.number(uint64(v.Len())); v.Len() == 0 {
			return
		}
		outer, before := e.buf, e.peer
		var entries [][]byte
		k, x := reflect.New(t.Key()), reflect.New(t.Elem())
		for i := v.MapRange(); i.Next(); {
			k.Elem().SetIterKey(i)
			x.Elem().SetIterValue(i)
			if byPeer {
				e.peer = e.world.index(*(*election.PeerID)(k.UnsafePointer()))
			}
			e.buf = e.borrow()
			key(e, k.UnsafePointer())
			inner(e, x.UnsafePointer())
			entries = append(entries, e.buf)
		}
		e.buf, e.peer = outer, before
		e.sorted(entries)
	}
}

// sorted appends the entries in their order, and takes their memory back.
func (e *encoder) sorted(entries [][]byte) {
	slices.SortFunc(entries, bytes.Compare)
	for _, b := range entries {
		e.buf = append(e.buf, b...)
		e.spare = append(e.spare, b)
	}
}

func (e *encoder) borrow() []byte {
	n := len(e.spare)
	if n == 0 {
		return make([]byte, 0, 256)
	}
	b := e.spare[n-1][:0]
	e.spare = e.spare[:n-1]
	return b
}

func dynamic(t reflect.Type) encode {
	return func(e *encoder, p unsafe.Pointer) {
		v := reflect.NewAt(t, p).Elem()
		e.truth(!v.IsNil())
		if v.IsNil() {
			return
		}
		held := reflect.New(v.Elem().Type())
		held.Elem().Set(v.Elem())
		e.text(held.Type().Elem().Name())
		e.value(held.Type().Elem(), held.UnsafePointer())
	}
}

func (e *encoder) structure(t reflect.Type) encode {
	type part struct {
		offset uintptr
		encode encode
	}
	var parts []part
	for i := range t.NumField() {
		f := t.Field(i)
		inner, ok := e.rules[t.String()+"."+f.Name]
		if !ok {
			inner = e.encodeOf(f.Type)
		}
		if inner != nil {
			parts = append(parts, part{offset: f.Offset, encode: inner})
		}
	}
	return func(e *encoder, p unsafe.Pointer) {
		for _, part := range parts {
			part.encode(e, unsafe.Add(p, part.offset))
		}
	}
}

// byPeer encodes the elector's sorted table of peers: keys, and a row each.
func (e *encoder) byPeer(t reflect.Type) encode {
	rows, _ := t.FieldByName("rows")
	inner, size := e.encodeOf(rows.Type.Elem()), rows.Type.Elem().Size()
	return func(e *encoder, p unsafe.Pointer) {
		keys := *(*[]election.PeerID)(p)
		first := unsafe.Pointer(unsafe.SliceData(*(*[]byte)(unsafe.Add(p, rows.Offset))))
		e.number(uint64(len(keys)))
		for i, id := range keys {
			e.text(string(id))
			e.peer = e.world.index(id)
			inner(e, unsafe.Add(first, uintptr(i)*size))
		}
	}
}

// hash returns the hash of the world's encoding.
func (e *encoder) hash(w *world) uint64 {
	e.buf = e.buf[:0]
	e.encodeWorld(w)
	return xxhash.Sum64(e.buf)
}
