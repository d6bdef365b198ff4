package footprint

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Garbage or lateness, even only once a second, makes the start last longer, but not for ever.
func TestTheStartIsOverOnceTheAgentRests(t *testing.T) {
	t.Parallel()
	always := func(time.Duration) bool { return true }
	never := func(time.Duration) bool { return false }
	for _, c := range []struct {
		what      string
		garbage   func(age time.Duration) bool // whether much garbage is made
		late      func(age time.Duration) bool
		notBefore time.Duration
		latest    time.Duration
	}{
		{"at rest", never, never, calmFor, calmFor},
		{"makes garbage for ten seconds", func(age time.Duration) bool { return age < 10*time.Second }, never, 10 * time.Second, 13 * time.Second},
		{"is late now and then", never, func(age time.Duration) bool {
			return age < 20*time.Second && age.Truncate(calmTick)%time.Second == 0
		}, 20 * time.Second, 23 * time.Second},
		{"always busy", always, always, calmLatest, calmLatest + calmTick},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			made := uint64(0)
			whenCalm(t.Context(), func() uint64 {
				if c.garbage(time.Since(began)) {
					made += littleGarbage / 4
				}
				return made
			}, func(time.Time) time.Duration {
				if c.late(time.Since(began)) {
					return onTime + 1
				}
				return 0
			}, func() {})
			if age := time.Since(began); age < c.notBefore || age > c.latest {
				t.Errorf("%s: over after %s, want %s to %s", c.what, age, c.notBefore, c.latest)
			}
		})
	}
}

// If the agent stops during its start, nothing is trimmed.
func TestTheStartOfAnAgentThatStopsIsNotOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	WhenCalm(ctx, func() { t.Error("called though the agent stops") })
}
