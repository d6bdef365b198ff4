package guard

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestThePlanOfEachProfile(t *testing.T) {
	for _, test := range []struct {
		lease, term, kill time.Duration // term and kill: how long before the lease's end
	}{
		{time.Minute, 20 * time.Second, time.Second},
		{6 * time.Second, 2 * time.Second, 600 * time.Millisecond},
		{1200 * time.Millisecond, 400 * time.Millisecond, 120 * time.Millisecond},
		{300 * time.Millisecond, 100 * time.Millisecond, 50 * time.Millisecond},
		{100 * time.Millisecond, 50 * time.Millisecond, 25 * time.Millisecond},
	} {
		const until = int64(time.Hour)
		got := Plan(until, test.lease)
		if term, kill := time.Duration(until-got.TermAt), time.Duration(until-got.KillAt); term != test.term || kill != test.kill {
			t.Errorf("lease %v: SIGTERM %v before its end, SIGKILL %v; want %v and %v", test.lease, term, kill, test.term, test.kill)
		}
	}
}

func TestEveryPlanLeavesTimeToDie(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lease := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "lease"))
		until := rapid.Int64Range(int64(time.Hour), int64(1000*time.Hour)).Draw(t, "until")
		p := Plan(until, lease)
		left := time.Duration(until - p.KillAt)
		if p.TermAt > p.KillAt || left < min(lease/10, time.Second) || left < min(50*time.Millisecond, lease/4) || time.Duration(until-p.TermAt) > lease {
			t.Fatalf("%+v", p)
		}
	})
}
