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

// breadthFirst visits states breadth first, until a step breaks a rule or that many were seen. each calls its
// function with each step that may follow a state, in the same order each time.
func breadthFirst[S comparable](first S, states int, each func(S, func(stepTo[S]))) Found {
	type node struct {
		state  S
		parent int
	}
	nodes, seen := []node{{first, -1}}, map[S]struct{}{first: {}}
	r := Found{States: 1}
	path := func(i int, last string) []string {
		lines := []string{last}
		for ; nodes[i].parent >= 0; i = nodes[i].parent {
			line := ""
			each(nodes[nodes[i].parent].state, func(n stepTo[S]) {
				if line == "" && n.next == nodes[i].state {
					line = n.what()
				}
			})
			lines = append(lines, line)
		}
		slices.Reverse(lines)
		return lines
	}
	for end, i := 1, 0; i < len(nodes); i++ {
		if i == end {
			end = len(nodes)
			r.Depth++
		}
		full := false
		each(nodes[i].state, func(n stepTo[S]) {
			if r.Violation != nil || full {
				return
			}
			if n.bad != "" {
				r.Violation, r.Path = errors.New(n.bad), path(i, n.what())
				return
			}
			if _, known := seen[n.next]; !known {
				seen[n.next] = struct{}{}
				nodes = append(nodes, node{n.next, i})
				r.States++
				full = r.States >= states
			}
		})
		if r.Violation != nil || full {
			return r
		}
	}
	r.Complete = true
	return r
}
