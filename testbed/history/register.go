package history

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/election"
)

// register is the shared resource.
type register struct {
	guarded bool // it checks tokens
	highest election.Term
	value   int
	refused int
}

// admit reports whether what comes with that token may be done.
func (r *register) admit(token election.Term) bool {
	if r.guarded && token < r.highest {
		r.refused++
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

// recorder keeps the history.
type recorder struct {
	operations []porcupine.Operation
}

// call records that an operation begins, and returns how to end it. One that is
// never ended has an unknown result.
func (h *recorder) call(client int, what Operation, now int64) *porcupine.Operation {
	return &porcupine.Operation{ClientId: client, Input: what, Call: now, Output: Result{}, Return: math.MaxInt64}
}

func (h *recorder) answered(o *porcupine.Operation, value int, now int64) {
	o.Output, o.Return = Result{Known: true, Value: value}, now
	h.operations = append(h.operations, *o)
}

// unknown records an operation that nobody will hear the end of.
func (h *recorder) unknown(o *porcupine.Operation) { h.operations = append(h.operations, *o) }

// judge reports whether the history is one of a counter. It gives up, and says
// neither, after that time.
func (h *recorder) judge(limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(Counter(0), h.operations, limit)
}
