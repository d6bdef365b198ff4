package simulation

import (
	"runtime"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/testbed/history"
)

// TestWithoutTheTokenCheckALateWriteUndoesASuccessors shows that a lease alone is not enough, and
// that the judge notices. A program pauses between the check of its lease and its write. If the
// counter takes every write, the successor's additions are lost. Part of such a world shows this
// too, unless the counter checks tokens. The test shrinks the shortest such world.
func TestWithoutTheTokenCheckALateWriteUndoesASuccessors(t *testing.T) {
	t.Parallel()
	const worlds = min(45, defaultSeeds/3)
	bad, fewest := 0, 0
	var shortest Options
	for s := uint64(1); s <= worlds; s++ {
		o := Options{Seed: s, Rule: "counter", unguarded: true}
		r := Run(o)
		if r.Violation == nil {
			continue
		}
		if bad++; bad == 1 || r.Stats.Steps < fewest {
			shortest, fewest = o, r.Stats.Steps
		}
		o.unguarded = false
		if v := Run(o).Violation; v != nil {
			t.Error(v)
		}
	}
	t.Logf("%d of %d histories are not those of a counter", bad, worlds)
	if bad*20 < worlds {
		t.Fatal("too few: the judge is blind, or nothing goes wrong")
	}
	s := Shrink(t.Context(), shortest, 100, runtime.GOMAXPROCS(0))
	if s == nil || s.Faults >= s.Before || Run(s.Options).Violation == nil {
		t.Fatalf("not shrunk: %+v", s)
	}
	t.Logf("seed %d: %d faults are left of %d: %s", shortest.Seed, s.Faults, s.Before, s.Options.Command())
	s.Options.unguarded = false
	if v := Run(s.Options).Violation; v != nil {
		t.Error(v)
	}
}

// TestTheJudgeWantsOneOrderOfAllAnswers shows which histories of a counter have such an order.
func TestTheJudgeWantsOneOrderOfAllAnswers(t *testing.T) {
	op := func(client int, what history.Operation, call, end int64, known bool, value int) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: what, Call: call, Return: end, Output: history.Result{Known: known, Value: value}}
	}
	for name, c := range map[string]struct {
		operations []porcupine.Operation
		want       bool
	}{
		"one after the other":       {[]porcupine.Operation{op(1, history.Read, 0, 1, true, 0), op(1, history.Add, 2, 3, true, 1), op(0, history.Read, 4, 5, true, 1)}, true},
		"two add one to the same":   {[]porcupine.Operation{op(1, history.Add, 0, 1, true, 1), op(2, history.Add, 2, 3, true, 1)}, false},
		"a read is from the past":   {[]porcupine.Operation{op(1, history.Add, 0, 1, true, 1), op(0, history.Read, 2, 3, true, 0)}, false},
		"an unknown one counts":     {[]porcupine.Operation{op(1, history.Add, 0, 9, false, 0), op(2, history.Add, 2, 3, true, 2)}, true},
		"or comes after all others": {[]porcupine.Operation{op(1, history.Add, 0, 9, false, 0), op(2, history.Add, 2, 3, true, 1)}, true},
	} {
		if got := porcupine.CheckOperations(history.Counter(0), c.operations); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
