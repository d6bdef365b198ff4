package leasepage

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

// host is a kernel whose clocks can be played with between any two readings.
type host struct {
	mono, boot, wall int64
	between          func() // called before each reading
}

func (h *host) clock() *clock {
	read := func(of *int64) int64 { h.between(); return *of }
	return &clock{
		pair: func() (int64, int64) { w := read(&h.wall); return w, read(&h.mono) },
		boot: func() int64 { return read(&h.boot) },
	}
}

func (h *host) run(d int64)     { h.mono, h.boot, h.wall = h.mono+d, h.boot+d, h.wall+d }
func (h *host) suspend(d int64) { h.boot, h.wall = h.boot+d, h.wall+d }

// Whatever happens between the readings of the system's clocks, ours is never
// behind what CLOCK_BOOTTIME was when the reading began: no lease looks longer
// than it is, a suspend least of all.
func TestTheClockIsNeverBehindWhateverHappens(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		h := &host{mono: rng.Int64N(1e15), wall: rng.Int64N(1e18)}
		h.boot = h.mono + rng.Int64N(1e15)
		h.between = func() {
			h.run(rng.Int64N(100))
			switch rng.IntN(40) {
			case 0:
				h.suspend(rng.Int64N(int64(time.Hour)))
			case 1: // somebody sets the time of day; not by what hides a suspend
				h.wall += (rng.Int64N(2e9)-1e9)*4000 + 2500
			case 2: // another process has the processor
				h.run(rng.Int64N(int64(10 * time.Millisecond)))
			}
		}
		c := h.clock()
		for range 50 {
			began := h.boot
			if got := c.now(); got < began-tolerance {
				t.Fatalf("seed %d: read %d ns behind", seed, began-got)
			} else if got > h.boot+closeBy+tolerance {
				t.Fatalf("seed %d: read %d ns ahead", seed, got-h.boot)
			}
		}
	}
}

func TestASuspendIsNoticedByTheNextReading(t *testing.T) {
	h := &host{mono: 1e9, boot: 5e9, wall: 1e18, between: func() {}}
	c := h.clock()
	for _, d := range []int64{0, 1e3, 2e3, 1e6, 1e9, 1e13} {
		c.now()
		h.run(5)
		h.suspend(d)
		if got := c.now(); got < h.boot-tolerance || got > h.boot {
			t.Errorf("after %s of suspend: %d ns off", time.Duration(d), got-h.boot)
		}
	}
}

func TestTheClockReadsAsTheSystemDoes(t *testing.T) {
	c := newClock()
	for range 10_000 {
		before := alarm.Now()
		got := c.now()
		after := alarm.Now()
		if got < before-tolerance || got > after+closeBy {
			t.Fatalf("read %d, the system %d before and %d after", got, before, after)
		}
	}
}
