package exhaustive

import (
	"errors"
	"slices"
)

// stepTo is a state that follows another one. what describes the step, for a path; bad is how the step breaks a
// rule; empty: it breaks none.
type stepTo[S any] struct {
	next S
	what func() string
	bad  string
}

// breadthFirst visits states breadth first, until a rule is broken or that many were seen. States with the same key
// are equal. each calls its function with each step that may follow a state, in the same order each time. check
// returns what is wrong with a state that is new.
func breadthFirst[S any, K comparable](first S, key func(S) K, states int, each func(S, func(stepTo[S])), check func(S) error) Found {
	type node struct {
		key    K
		parent int
	}
	nodes, seen := []node{{key(first), -1}}, map[K]struct{}{key(first): {}}
	path := func(i int, last string) []string {
		var way []K
		for ; nodes[i].parent >= 0; i = nodes[i].parent {
			way = append(way, nodes[i].key)
		}
		at, lines := first, []string(nil)
		for _, k := range slices.Backward(way) {
			var taken *stepTo[S]
			each(at, func(n stepTo[S]) {
				if taken == nil && key(n.next) == k {
					taken = &n
				}
			})
			at, lines = taken.next, append(lines, taken.what())
		}
		return append(lines, last)
	}
	r, level, begin := Found{States: 1}, []S{first}, 0 // begin is the node of the level's first state
	for ; len(level) > 0; r.Depth++ {
		var next []S
		for i, s := range level {
			each(s, func(n stepTo[S]) {
				if r.Violation != nil || r.States >= states {
					return
				}
				if n.bad != "" {
					r.Violation, r.Path = errors.New(n.bad), path(begin+i, n.what())
					return
				}
				k := key(n.next)
				if _, known := seen[k]; known {
					return
				}
				seen[k] = struct{}{}
				nodes, next = append(nodes, node{k, begin + i}), append(next, n.next)
				r.States++
				if r.Violation = check(n.next); r.Violation != nil {
					r.Path = path(begin+i, n.what())
				}
			})
			if r.Violation != nil || r.States >= states {
				return r
			}
		}
		begin, level = begin+len(level), next
	}
	r.Complete = true
	return r
}

// itself is the key of a state that can be compared, and right is the check where each step is judged instead.
func itself[S comparable](s S) S { return s }
func right[S any](S) error       { return nil }
