package simulation

import (
	"runtime"
	"testing"

	"github.com/doyen-election/doyen/agent/record"
)

// TestCarelessHostsAreFoundOut shows that the checkers notice when hosts break a rule of lives or
// of companions.
func TestCarelessHostsAreFoundOut(t *testing.T) {
	t.Parallel()
	if testing.Short() || defaultSeeds < 300 {
		t.Skip("it plays some thousand worlds: not with -short; CI runs it")
	}
	tests := map[string]struct {
		options Options
		rule    string
	}{
		"a step's record is lost if the process dies in it":                        {Options{careless: recordsLate}, "K1"},
		"a life goes on with none of its lineage's rows":                           {Options{careless: forgetsRows}, "K4d"},
		"the next life releases a term though a companion of the former may act":   {Options{spoil: forgetsCompanions}, "K4b"},
		"a companion whose hook was removed is not waited for, while its run acts": {Options{spoil: asksTheConfiguration}, "G1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.options.Rule = test.rule
			_, v := Sweep(t.Context(), SweepOptions{Options: test.options, From: 1, Seeds: 4000, Cores: runtime.GOMAXPROCS(0)})
			if v == nil || v.Rule != test.rule {
				t.Fatalf("found %v, want a violation of %s", v, test.rule)
			}
			t.Log(v)
		})
	}
}

// forgetsCompanions removes companions from the record.
func forgetsCompanions(a *agent) {
	for name, on := range a.recordedActors {
		on.Companion = record.Program{}
		a.recordedActors[name] = on
	}
}

// asksTheConfiguration gives a companion's receipt for elections that its configuration has dropped.
func asksTheConfiguration(a *agent) {
	for e, acts := range a.companion.acts {
		if k := a.companion.k; k != nil && !acts && a.runs[e].leads {
			_ = a.registry.Receipt(k.ID(), a.w.plan.elections[e], 0, "", anybody)
		}
	}
}
