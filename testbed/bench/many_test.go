package bench

import (
	"testing"

	"github.com/doyen-election/doyen/testbed/hosts"
)

func TestTheSecondCandidatesAreSpread(t *testing.T) {
	v := newBallots(t.Context(), make([]*hosts.Host, 0), 0)
	v.clients = append(v.clients, nil, nil, nil, nil, nil)
	heirs := map[[2]int]int{}
	for i := range 1000 {
		first, second := v.host(i, false), v.host(i, true)
		if first == second {
			t.Fatalf("election %d has both candidates on host %d", i, first)
		}
		heirs[[2]int{first, second}]++
	}
	for pair, n := range heirs {
		if n != 50 {
			t.Errorf("%d elections of host %d have their heir on host %d, want 50", n, pair[0], pair[1])
		}
	}
}

func TestManyElectionsAreLedAgain(t *testing.T) {
	b := small(t)
	b.idleTime = lookEvery
	costs, took, err := b.many(t.Context(), 12)
	if err != nil || len(costs) != 3 || len(took) != 4 {
		t.Fatalf("costs %v, took %v: %v", costs, took, err)
	}
	for _, ms := range took {
		if ms <= 0 || ms > 5000 {
			t.Errorf("it took %v ms", ms)
		}
	}
}
