package exhaustive

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"unsafe"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// cloner makes deep copies, unexported fields included. It compiles a type into
// what must be replaced in a shallow copy, so that a value without references
// costs one assignment. It is not safe for concurrent use: each worker has one.
type cloner struct {
	fixes map[reflect.Type]fix
	memo  []moved // of the copy under way: what was shared inside stays shared
}

// fix replaces the references in a shallow copy by deep copies of what they
// refer to. A nil fix has nothing to do.
type fix func(p unsafe.Pointer)

type moved struct{ from, to unsafe.Pointer }

// immutable are the types that are never changed in place, so that copies may
// share them.
var immutable = []reflect.Type{
	reflect.TypeFor[*election.Roster](), reflect.TypeFor[election.Roster](),
	reflect.TypeFor[*election.Genesis](), reflect.TypeFor[election.View](),
	reflect.TypeFor[election.Message](), reflect.TypeFor[election.Output](),
	reflect.TypeFor[elector.Config](), reflect.TypeFor[*contest.Config](), reflect.TypeFor[*rand.Rand](),
}

func newCloner() *cloner {
	c := &cloner{fixes: map[reflect.Type]fix{}}
	for _, t := range immutable {
		c.fixes[t] = nil
	}
	// Counters do not matter here; each copy counts from 0.
	c.fixes[reflect.TypeFor[elector.Counters]()] = func(p unsafe.Pointer) {
		*(*elector.Counters)(p) = elector.Counters{Sent: map[string]uint64{}, Received: map[string]uint64{}, Dropped: map[string]uint64{}}
	}
	return c
}

// elector returns a copy of e that shares nothing that changes.
func (c *cloner) elector(e *elector.Elector) *elector.Elector {
	c.memo = c.memo[:0]
	c.fixOf(reflect.TypeFor[*elector.Elector]())(unsafe.Pointer(&e))
	return e
}

// fixOf compiles a type. The types of this program are known when it is
// written, so one that can't be copied is a defect of it.
func (c *cloner) fixOf(t reflect.Type) fix {
	if f, ok := c.fixes[t]; ok {
		return f
	}
	var compiled fix
	c.fixes[t] = func(p unsafe.Pointer) { compiled(p) } // for types that refer to themselves
	switch t.Kind() {
	case reflect.Pointer:
		compiled = c.pointer(t.Elem())
	case reflect.Slice:
		compiled = c.slice(t)
	case reflect.Map:
		compiled = c.mapping(t)
	case reflect.Interface:
		compiled = c.dynamic(t)
	case reflect.Struct:
		compiled = c.structure(t)
	case reflect.Array, reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Uintptr:
		panic(fmt.Sprintf("clone: no rule for %s", t))
	default: // numbers, booleans and strings
	}
	c.fixes[t] = compiled
	return compiled
}

func (c *cloner) pointer(elem reflect.Type) fix {
	inner := c.fixOf(elem)
	return func(p unsafe.Pointer) {
		at := (*unsafe.Pointer)(p)
		if *at == nil {
			return
		}
		for _, m := range c.memo {
			if m.from == *at {
				*at = m.to
				return
			}
		}
		made := reflect.New(elem)
		made.Elem().Set(reflect.NewAt(elem, *at).Elem())
		c.memo = append(c.memo, moved{from: *at, to: made.UnsafePointer()})
		*at = made.UnsafePointer()
		if inner != nil {
			inner(*at)
		}
	}
}

func (c *cloner) slice(t reflect.Type) fix {
	inner := c.fixOf(t.Elem())
	size := t.Elem().Size()
	return func(p unsafe.Pointer) {
		if len(*(*[]byte)(p)) == 0 { // of any slice: only its length is read
			*(*[]byte)(p) = nil
			return
		}
		v := reflect.NewAt(t, p).Elem()
		made := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(made, v)
		v.Set(made)
		for i := 0; inner != nil && i < made.Len(); i++ {
			inner(unsafe.Add(made.UnsafePointer(), uintptr(i)*size))
		}
	}
}

// mapping copies a map. Its keys are plain values.
func (c *cloner) mapping(t reflect.Type) fix {
	inner := c.fixOf(t.Elem())
	return func(p unsafe.Pointer) {
		if *(*unsafe.Pointer)(p) == nil {
			return
		}
		v := reflect.NewAt(t, p).Elem()
		made := reflect.MakeMapWithSize(t, v.Len())
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem())
		for i := v.MapRange(); i.Next(); {
			key.SetIterKey(i)
			value.Elem().SetIterValue(i)
			if inner != nil {
				inner(value.UnsafePointer())
			}
			made.SetMapIndex(key, value.Elem())
		}
		v.Set(made)
	}
}

func (c *cloner) dynamic(t reflect.Type) fix {
	return func(p unsafe.Pointer) {
		v := reflect.NewAt(t, p).Elem()
		if v.IsNil() {
			return
		}
		held := reflect.New(v.Elem().Type())
		held.Elem().Set(v.Elem())
		if inner := c.fixOf(held.Elem().Type()); inner != nil {
			inner(held.UnsafePointer())
		}
		v.Set(held.Elem())
	}
}

func (c *cloner) structure(t reflect.Type) fix {
	type part struct {
		offset uintptr
		fix    fix
	}
	var parts []part
	for i := range t.NumField() {
		f := t.Field(i)
		if inner := c.fixOf(f.Type); inner != nil {
			parts = append(parts, part{offset: f.Offset, fix: inner})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return func(p unsafe.Pointer) {
		for _, part := range parts {
			part.fix(unsafe.Add(p, part.offset))
		}
	}
}
