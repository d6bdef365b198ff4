package runner

import (
	"testing"
	"time"
)

func TestThePauseGrowsToItsBound(t *testing.T) {
	last := time.Duration(0)
	for n := 1; n < 100; n++ {
		p := pause(n)
		if p < last || p > latest {
			t.Fatalf("after %v the wait %d is %v", last, n, p)
		}
		last = p
	}
	if pause(1) != soonest || last != latest {
		t.Errorf("from %v to %v", pause(1), last)
	}
}
