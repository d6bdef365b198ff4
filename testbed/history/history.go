// Package history has a resource that a fencing token protects: a counter outside the cluster
// that only the leader's program should change. It also judges what programs did to the
// counter. The simulation and the soak run programs that use the counter.
//
// A program reads the counter with its token. Then it adds one again and again, with a write for
// each addition. Each operation is recorded with the instants of its call and its return.
// Porcupine (Athalye 2017) then decides whether some order of the operations explains all answers
// as those of a counter: linearizability (Herlihy and Wing 1990).
//
// The package shows that tokens that rise with each leader keep such a counter exact, whatever
// stops a leader between looking at its lease and writing (Kleppmann 2016). It assumes that a
// program has one write under way at a time, and that each write arrives once.
package history

import (
	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/election"
)

// Register is the counter. It admits operations whose token is at least as high as the highest
// it has seen, and refuses the rest.
type Register struct {
	Value     int
	Refused   int
	Unguarded bool // a defect: it admits any token

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

// Result is the answer to an operation. Even if the answer is not known, the operation happened
// at some instant between its call and its return.
type Result struct {
	Known bool
	Value int // the value read, or the value after the addition
}

// Counter is the specification of a counter that begins at first. Additions of one and reads
// happen one at a time. Inputs are Operations, outputs are Results.
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
