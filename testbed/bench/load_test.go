package bench

import (
	"testing"
	"time"
)

func TestElectionsWithACandidateOnEachHostAreLedUnderLoad(t *testing.T) {
	b := small(t)
	u, err := b.underLoad(t.Context(), 5, 1, lookEvery)
	if err != nil || len(u.settled) != 1 || len(u.after) != 1 || len(u.lostAfter) != 1 {
		t.Fatalf("%+v: %v", u, err)
	}
}

func TestReadersWhoHaveAMajorityAskedAreCounted(t *testing.T) {
	b := small(t)
	all, lost, err := b.crowdOfReaders(t.Context(), 3, 4, time.Second)
	if err != nil || lost != 0 {
		t.Fatalf("%v leads were lost: %v", lost, err)
	}
	if len(all.answered) == 0 || len(all.refused) == 0 {
		t.Errorf("%d answered, %d refused", len(all.answered), len(all.refused))
	}
}
