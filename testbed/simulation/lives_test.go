package simulation

import (
	"runtime"
	"testing"
)

// TestCarelessHostsAreFoundOut shows that the checkers see what comes of it where hosts
// break a rule of lives.
func TestCarelessHostsAreFoundOut(t *testing.T) {
	if testing.Short() || defaultSeeds < 700 {
		t.Skip("it plays some thousand worlds: not with -short; CI runs it")
	}
	tests := map[string]struct {
		careless carelessness
		rule     string
	}{
		"a step's record is lost if the process dies in it": {recordsLate, "K1"},
		"a life goes on with none of its lineage's rows":    {forgetsRows, "K4d"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, v := Sweep(t.Context(), SweepOptions{Options: Options{careless: test.careless, Rule: test.rule}, From: 1, Seeds: 4000, Cores: runtime.GOMAXPROCS(0)})
			if v == nil || v.Rule != test.rule {
				t.Fatalf("found %v, want a violation of %s", v, test.rule)
			}
			t.Log(v)
		})
	}
}
