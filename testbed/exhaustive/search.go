package exhaustive

import (
	"fmt"
	"slices"
	"strings"
)

// Found is what a search of a world of plain values has found.
type Found struct {
	States    int
	Depth     int  // every state up to this many steps was visited
	Complete  bool // there are no other states
	Violation error
	Path      []string // to the violation
}

func (f Found) String() string {
	text := fmt.Sprintf("%d states, complete to depth %d (all: %v)", f.States, f.Depth, f.Complete)
	if f.Violation != nil {
		text += fmt.Sprintf("\n%v\n%s", f.Violation, strings.Join(f.Path, "\n"))
	}
	return text
}

// step is one thing that can happen in a world.
type step[W any] struct {
	text string
	do   func(W)
}

// searched is a world whose steps are tried in every order.
type searched[W any] interface {
	clone() W
	steps() []step[W]
	key() string  // distinguishes states
	check() error // what is wrong with this state, once it is known to be a new one
}

// search visits the states of a world breadth first, at most so many.
func search[W searched[W]](first W, most int) Found {
	type state struct {
		world W
		path  []string
	}
	level, seen, r := []state{{world: first}}, map[string]bool{first.key(): true}, Found{States: 1}
	for ; len(level) > 0; r.Depth++ {
		var next []state
		for _, s := range level {
			for _, step := range s.world.steps() {
				w := s.world.clone()
				step.do(w)
				k := w.key()
				if seen[k] {
					continue
				}
				seen[k] = true
				r.States++
				path := append(slices.Clip(s.path), step.text)
				if r.Violation = w.check(); r.Violation != nil {
					r.Path = path
					return r
				}
				if r.States >= most {
					return r
				}
				next = append(next, state{w, path})
			}
		}
		level = next
	}
	r.Complete = true
	return r
}

// take takes the named steps.
func take[W searched[W]](w W, names ...string) error {
	for _, name := range names {
		steps := w.steps()
		i := slices.IndexFunc(steps, func(s step[W]) bool { return s.text == name })
		if i < 0 {
			return fmt.Errorf("%q can't happen there", name)
		}
		steps[i].do(w)
	}
	return nil
}
