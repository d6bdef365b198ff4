// Package history has the resource that a fencing token is for, and the judge of
// what was asked of it: a counter outside the cluster that only the leader's
// program should change. The simulation and the soak run such programs.
//
// A program reads the counter with its token, and goes on adding one to what it
// read, a write for each addition. Each operation is recorded with when it was
// called and when it returned, and porcupine (Athalye 2017) decides whether some
// order of them explains all the answers as those of a counter: linearizability
// (Herlihy and Wing 1990).
//
// It shows that tokens that rise with each leader keep such a counter exact,
// whatever stops a leader between looking at its lease and writing (Kleppmann
// 2016). It assumes that one program has one write under way at a time, which
// arrives once.
package history

import (
	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/election"
)

// Register is the counter. It takes what comes with a token at least as high as
// the highest it has seen, and refuses the rest.
type Register struct {
	Value     int
	Refused   int
	Unguarded bool // a defect: it takes what comes with any token

	highest election.Term
}

func (r *Register) Admit(token election.Term) bool {
	if token < r.highest && !r.Unguarded {
		r.Refused++
		return false
	}
	r.highest = max(r.highest, token)
	return true
}

// Operation is what a client asks of the counter, as a history records it.
type Operation uint8

const (
	Read Operation = iota
	Add
)

// Result is what came back. An operation whose result is not known happened at
// some time between its call and its return, all the same.
type Result struct {
	Known bool
	Value int // read, or after the addition
}

// Counter is the specification of a counter that begins at first: additions of
// one and reads, one at a time. Inputs are Operations, outputs Results.
func Counter(first int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			n, r := state.(int), output.(Result)
			if input.(Operation) == Add {
				return !r.Known || r.Value == n+1, n + 1
			}
			return !r.Known || r.Value == n, n
		},
	}
}
