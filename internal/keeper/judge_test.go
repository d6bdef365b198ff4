package keeper

import (
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

func unknown(int64) map[int]thread { return nil }

// feed steps a watch at each instant when it is due. next is what the life has written by then, and late is
// when the keeper really runs. feed returns the millisecond at which the watch found that the life hangs, or
// -1.
func feed(w *watch, next func(now int64) int64, late func(due int64) int64, until int64) int64 {
	return feedWith(w, next, late, unknown, until)
}

func feedWith(w *watch, next func(now int64) int64, late func(due int64) int64, threads func(now int64) map[int]thread, until int64) int64 {
	*w = watch{due: 0}
	for now := int64(0); now <= until*ms; now = max(now+1, late(w.due)) {
		if w.step(now, next(now), 400*time.Millisecond, func() map[int]thread { return threads(now) }) {
			return now / ms
		}
	}
	return -1
}

func onTime(due int64) int64 { return due }

func TestALifeThatTicksIsLeftAlone(t *testing.T) {
	every := func(now int64) int64 { return now/(200*ms)*200*ms + 200*ms }
	if at := feed(&watch{}, every, onTime, 60_000); at >= 0 {
		t.Errorf("it was killed after %d ms", at)
	}
}

func TestALifeThatHangsIsKilledAfterItsAllowance(t *testing.T) {
	hangs := func(int64) int64 { return 1000 * ms }
	if at := feed(&watch{}, hangs, onTime, 60_000); at < 1400 || at > 1510 {
		t.Errorf("it was to tick at 1,000 ms, has 400 ms, and was killed at %d", at)
	}
}

// On a host that was paused or suspended, the keeper was late too, so it kills nothing.
func TestAKeeperThatWasLateKillsNobody(t *testing.T) {
	hangs := func(int64) int64 { return 1000 * ms }
	if at := feed(&watch{}, hangs, func(due int64) int64 { return due + 300*ms }, 60_000); at >= 0 {
		t.Errorf("it was killed at %d ms by a keeper that was always late", at)
	}
	stood := func(now int64) int64 { // the host is paused from 900 to 5,000 ms, and the life ticks at 5,350 ms
		if now < 5350*ms {
			return 1000 * ms
		}
		return now + 200*ms
	}
	if at := feed(&watch{}, stood, func(due int64) int64 {
		if due > 900*ms && due < 5000*ms {
			return 5000 * ms
		}
		return due
	}, 60_000); at >= 0 {
		t.Errorf("it was killed at %d ms though it had only 350 ms", at)
	}
}

// The life is overdue from 1,000 ms on, and its allowance is 400 ms. It is killed at 1,400 ms unless its
// threads waited for a processor. The kernel counts a wait when it ends.
func TestALifeThatWaitsForAProcessorIsNotKilled(t *testing.T) {
	const sleeps, wants = false, true
	at := func(now int64, state bool, ran, waited int64) thread {
		return thread{ran: time.Duration(ran * ms), waited: time.Duration(waited * ms), wants: state}
	}
	for name, c := range map[string]struct {
		threads func(now int64) map[int]thread // now in milliseconds
		killed  int64                          // -1: never
	}{
		"stopped, or stuck in the kernel": {func(int64) map[int]thread { return map[int]thread{1: at(0, sleeps, 7, 90), 2: at(0, sleeps, 8, 5000)} }, 1400},
		"spins on a processor of its own": {func(now int64) map[int]thread { return map[int]thread{1: at(now, wants, now, 90)} }, 1400},
		"spins with a third of one":       {func(now int64) map[int]thread { return map[int]thread{1: at(now, wants, now/3, 2*now/3)} }, -1},
		"spins with two thirds of one":    {func(now int64) map[int]thread { return map[int]thread{1: at(now, wants, 2*now/3, now/3)} }, 1400},
		"waits without end":               {func(int64) map[int]thread { return map[int]thread{1: at(0, wants, 7, 90), 2: at(0, sleeps, 7, 90)} }, -1},
		"waits for long, runs briefly":    {func(now int64) map[int]thread { return map[int]thread{1: at(now, wants, 1+now/350, now/350*349)} }, -1},
		"a wait ends that began before":   {func(now int64) map[int]thread { return map[int]thread{1: at(now, sleeps, 8, 900*min(1, now/1150))} }, 1400},
		"each of two threads waits in turn": {func(now int64) map[int]thread {
			return map[int]thread{1: at(now, sleeps, 7, now*3/10), 2: at(now, sleeps, 7, now*3/10)}
		}, -1},
		"new threads wait":                       {func(now int64) map[int]thread { return map[int]thread{int(now): at(now, wants, 0, 80)} }, -1},
		"hangs after it had waited for a second": {func(now int64) map[int]thread { return map[int]thread{1: at(now, sleeps, 7, min(now, 2000))} }, 3000},
		"not known":                              {unknown, 1400},
	} {
		hangs := func(int64) int64 { return 1000 * ms }
		killed := feedWith(&watch{}, hangs, onTime, func(now int64) map[int]thread { return c.threads(now / ms) }, 20_000)
		if early, late := c.killed-1, c.killed+210; c.killed < 0 && killed >= 0 || c.killed >= 0 && (killed < early || killed > late) {
			t.Errorf("%s: killed at %d ms, want %d", name, killed, c.killed)
		}
	}
}

func TestALifeThatIsNotJudgedCostsNoWakeUp(t *testing.T) {
	w := watch{due: 0}
	if w.step(5*ms, never, time.Second, nil) || w.due != never {
		t.Errorf("due at %d", w.due)
	}
}

func TestShortLivesFollowEachOtherEverMoreSlowly(t *testing.T) {
	var l lives
	var waits []time.Duration
	for range 12 {
		waits = append(waits, l.ended(time.Second, true, false))
	}
	if waits[0] != 0 || waits[1] != 0 || waits[2] != backOff || waits[3] != 2*backOff || waits[11] != maxBackOff {
		t.Errorf("waited %v", waits)
	}
	if l.hopeless() {
		t.Error("lives that ran are hopeless")
	}
	if wait := l.ended(time.Minute, true, false); wait != 0 {
		t.Errorf("after a long life: waited %v", wait)
	}
}

func TestALineageIsGivenUpAfterThreeLivesThatNeverRan(t *testing.T) {
	l := lives{ran: true}
	for n := 1; n <= 3; n++ {
		if l.hopeless() {
			t.Fatalf("hopeless after %d", n-1)
		}
		if wait := l.ended(time.Millisecond, false, false); n < 3 && wait != 0 {
			t.Errorf("waited %v after %d", wait, n)
		}
	}
	if !l.hopeless() {
		t.Error("not hopeless after three")
	}
}

func TestALifeThatIsOnlySlowGetsMoreTime(t *testing.T) {
	var l lives
	l.ended(time.Second, true, true)
	l.ended(time.Second, true, true)
	if l.factor() != 4 {
		t.Errorf("killed twice: %d times the allowance", l.factor())
	}
	if l.ended(time.Hour, true, false); l.factor() != 1 {
		t.Errorf("after a long life: %d times the allowance", l.factor())
	}
}

func TestHangsThatAreRareCostNoPatience(t *testing.T) {
	var l lives
	for range 3 {
		l.ended(24*time.Hour, true, true)
	}
	if l.factor() != 1 {
		t.Errorf("the allowance is %d times what it was", l.factor())
	}
	l.ended(time.Minute, true, true)
	if l.factor() != 2 {
		t.Errorf("after one that may be slow: %d times", l.factor())
	}
}
