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

// operation is what a client asks of the counter, as the history records it.
type operation uint8

const (
	read operation = iota
	add
)

// result is what came back. An operation whose result is unknown may have
// happened at any time since, or never.
type result struct {
	known bool
	value int // read, or after the addition
}

// counter is the specification: additions and reads, one at a time.
func counter() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, input, output any) (bool, any) {
			n, r := state.(int), output.(result)
			if input.(operation) == add {
				return !r.known || r.value == n+1, n + 1
			}
			return !r.known || r.value == n, n
		},
	}
}

// recorder keeps the history.
type recorder struct {
	operations []porcupine.Operation
}

// call records that an operation begins, and returns how to end it. One that is
// never ended has an unknown result.
func (h *recorder) call(client int, what operation, now int64) *porcupine.Operation {
	return &porcupine.Operation{ClientId: client, Input: what, Call: now, Output: result{}, Return: math.MaxInt64}
}

func (h *recorder) answered(o *porcupine.Operation, value int, now int64) {
	o.Output, o.Return = result{known: true, value: value}, now
	h.operations = append(h.operations, *o)
}

// unknown records an operation that nobody will hear the end of.
func (h *recorder) unknown(o *porcupine.Operation) { h.operations = append(h.operations, *o) }

// judge reports whether the history is one of a counter. It gives up, and says
// neither, after that time.
func (h *recorder) judge(limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(counter(), h.operations, limit)
}
