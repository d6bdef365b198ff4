package boottime

import (
	"math/rand/v2"
	"testing"
	"time"
)

// host simulates a kernel's clocks. A test can change them between any two readings.
type host struct {
	mono, boot int64
	between    func() // called before each reading
}

func (h *host) read() (before, boot, after int64) {
	h.between()
	before = h.mono
	h.between()
	boot = h.boot
	h.between()
	return before, boot, h.mono
}

func (h *host) run(d int64)     { h.mono, h.boot = h.mono+d, h.boot+d }
func (h *host) suspend(d int64) { h.boot += d }

func TestEachSuspendIsSeenOnce(t *testing.T) {
	h := &host{mono: 1e9, boot: 5e15}
	h.between = func() { h.run(300) }
	s := newSuspends(h.read)
	for _, d := range []time.Duration{time.Millisecond, time.Second, 24 * time.Hour, time.Second} {
		if s.Seen() {
			t.Fatalf("before %s: seen where there is none", d)
		}
		h.run(int64(time.Hour))
		h.suspend(int64(d))
		if !s.Seen() {
			t.Errorf("a suspend counted as %s is not seen", d)
		}
	}
	if s.Seen() {
		t.Error("the last one is seen twice")
	}
}

// The process may wait for a processor between two readings, for any time. The clocks may be rounded by a
// nanosecond either way.
func TestABusyMachineIsNoSuspend(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	h := &host{mono: 1e9, boot: 5e15}
	h.between = func() {
		h.run(rng.Int64N(200))
		if rng.IntN(5) == 0 {
			h.run(rng.Int64N(int64(time.Minute)))
		}
	}
	s := newSuspends(func() (before, boot, after int64) {
		before, boot, after = h.read()
		return before, boot + rng.Int64N(3) - 1, after
	})
	for range 10_000 {
		if s.Seen() {
			t.Fatalf("seed %d: seen where there is none", seed)
		}
	}
}

// A slow reading may hide a suspend, but the next quick one shows it.
func TestASuspendIsSeenAfterASlowReading(t *testing.T) {
	h := &host{mono: 1e9, boot: 5e15}
	h.between = func() { h.run(int64(3 * time.Second)) }
	s := newSuspends(h.read)
	h.between = func() { h.run(300) }
	s.Seen()
	h.between = func() { h.run(int64(3 * time.Second)) }
	s.Seen()
	h.suspend(int64(time.Second))
	s.Seen() // this reading is too slow to show anything
	h.between = func() { h.run(300) }
	if !s.Seen() {
		t.Fatal("a suspend of a second is not seen by a quick reading")
	}
}

func TestTheHostThatRunsThisWasNotSuspended(t *testing.T) {
	s := NewSuspends()
	for range 100_000 {
		if s.Seen() {
			t.Fatalf("a suspend while a test ran (%d ns ahead now)", s.ahead)
		}
	}
}

func BenchmarkSeen(b *testing.B) {
	s := NewSuspends()
	for b.Loop() {
		s.Seen()
	}
}
