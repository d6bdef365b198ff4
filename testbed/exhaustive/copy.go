package exhaustive

import (
	"reflect"
	"unsafe"

	"github.com/doyen-election/doyen/election"
)

// fixed are the types whose values all copies share: the values never change, or count what is
// found in all copies.
var fixed = map[reflect.Type]bool{
	reflect.TypeFor[election.Config](): true, reflect.TypeFor[election.Roster](): true, reflect.TypeFor[election.Genesis](): true,
	reflect.TypeFor[RosterOptions](): true, reflect.TypeFor[LeaseResult](): true, reflect.TypeFor[LeaseOptions](): true,
}

// copier copies values with all that they refer to, private fields included.
type copier struct {
	copies map[unsafe.Pointer]reflect.Value // by the pointer to the original
	fields map[reflect.Type][]int           // of each struct, the fields that refer to anything that can change
}

func newCopier() *copier {
	return &copier{copies: map[unsafe.Pointer]reflect.Value{}, fields: map[reflect.Type][]int{}}
}

// copied returns a copy that shares nothing that can change.
func copied[T any](c *copier, original *T) *T {
	clear(c.copies)
	n := *original
	c.unshare(reflect.ValueOf(&n).Elem())
	return &n
}

// unshare replaces all that a variable refers to by copies. Messages are values in interfaces, and
// never change.
func (c *copier) unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, i := range c.changing(v.Type()) {
			f := v.Field(i)
			c.unshare(reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()) // so that a private field can be set
		}
	case reflect.Array:
		for i := range v.Len() {
			c.unshare(v.Index(i))
		}
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(s, v)
		for i := 0; i < s.Len() && c.mayChange(v.Type().Elem()); i++ {
			c.unshare(s.Index(i))
		}
		v.Set(s)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		m := reflect.MakeMapWithSize(v.Type(), v.Len())
		for i := v.MapRange(); i.Next(); {
			x := reflect.New(v.Type().Elem()).Elem()
			x.Set(i.Value())
			if c.mayChange(x.Type()) {
				c.unshare(x)
			}
			m.SetMapIndex(i.Key(), x)
		}
		v.Set(m)
	case reflect.Interface:
		if v.Elem().Kind() == reflect.Pointer {
			v.Set(c.pointer(v.Elem()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			v.Set(c.pointer(v))
		}
	}
}

func (c *copier) pointer(p reflect.Value) reflect.Value {
	n, known := c.copies[p.UnsafePointer()]
	if !known {
		n = reflect.New(p.Type().Elem())
		c.copies[p.UnsafePointer()] = n
		n.Elem().Set(p.Elem())
		c.unshare(n.Elem())
	}
	return n
}

func (c *copier) mayChange(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		return !fixed[t] && len(c.changing(t)) > 0
	case reflect.Pointer:
		return !fixed[t.Elem()]
	case reflect.Array:
		return c.mayChange(t.Elem())
	case reflect.Slice, reflect.Map, reflect.Interface:
		return true
	}
	return false
}

func (c *copier) changing(t reflect.Type) []int {
	all, known := c.fields[t]
	if !known {
		for i := range t.NumField() {
			if c.mayChange(t.Field(i).Type) {
				all = append(all, i)
			}
		}
		c.fields[t] = all
	}
	return all
}
