package failuredetector_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/failuredetector"
)

const ms = time.Millisecond

const window = 200 // intervals that are remembered

func lan() *failuredetector.Detector { return failuredetector.New(200*ms, 1200*ms) }

// silence is how long the detector trusts after the last arrival.
func silence(d *failuredetector.Detector, heard election.Instant) time.Duration {
	return d.Deadline().Sub(heard)
}

func TestWatchesNobodyAtFirst(t *testing.T) {
	d := lan()
	if (1<<60 >= d.Deadline()) || d.Deadline() != election.Never {
		t.Fatalf("suspects %t, deadline %d", (1<<60 >= d.Deadline()), d.Deadline())
	}
}

// TestPriorIsTheHeartbeat shows what a detector assumes before it has heard anything: intervals of
// a heartbeat, with a deviation of a quarter of a heartbeat.
func TestPriorIsTheHeartbeat(t *testing.T) {
	d := lan()
	d.Heard(1000)
	want := 200*ms + time.Duration(5.612*float64(50*ms)) // phi 8 is 5.612 deviations
	if got := silence(d, 1000); (got - want).Abs() > ms {
		t.Fatalf("trusts %s of silence, want %s", got, want)
	}
}

// TestRegularArrivals shows the lower bound: however regular the arrivals are,
// two intervals of silence are never suspect.
func TestRegularArrivals(t *testing.T) {
	d := lan()
	now := election.Instant(0)
	for range 3 * window {
		d.Heard(now)
		if now.Add(400*ms-1) >= d.Deadline() {
			t.Fatalf("suspects at %d", now)
		}
		now = now.Add(200 * ms)
	}
	if got := silence(d, now.Add(-200*ms)); got != 400*ms {
		t.Fatalf("trusts %s of silence, want 400ms", got)
	}
}

// TestIrregularArrivals shows that the detector grows patient with jitter, and
// that the lease bounds its patience.
func TestIrregularArrivals(t *testing.T) {
	d := lan()
	now := election.Instant(0)
	arrive := func(intervals ...time.Duration) {
		for range window {
			for _, i := range intervals {
				now = now.Add(i)
				d.Heard(now)
			}
		}
	}
	arrive(100*ms, 300*ms) // mean 200 ms, deviation 100 ms
	if got, want := silence(d, now), 761*ms; (got - want).Abs() > 2*ms {
		t.Errorf("trusts %s of silence, want %s", got, want)
	}
	arrive(10*ms, 900*ms)
	if got := silence(d, now); got != 1200*ms {
		t.Errorf("trusts %s of silence, want the lease", got)
	}
	arrive(200 * ms)
	if got := silence(d, now); got != 400*ms {
		t.Errorf("trusts %s of silence once the jitter is over, want 400ms", got)
	}
}

// TestLongPauseIsForgiven shows that one pause, such as a suspend of the host, does not slow down
// the detector for long.
func TestLongPauseIsForgiven(t *testing.T) {
	d := lan()
	now := election.Instant(0)
	for range window {
		now = now.Add(200 * ms)
		d.Heard(now)
	}
	now = now.Add(8 * time.Hour)
	if !(now >= d.Deadline()) {
		t.Fatal("trusts after eight hours of silence")
	}
	d.Heard(now)
	if now >= d.Deadline() {
		t.Fatal("suspects an agent just heard")
	}
	if got := silence(d, now); got > 700*ms {
		t.Fatalf("trusts %s of silence after one pause", got)
	}
}

// TestClockBackwards shows that an arrival before the last one changes nothing.
func TestClockBackwards(t *testing.T) {
	d := lan()
	d.Heard(election.Instant(time.Second))
	before := d.Deadline()
	d.Heard(0)
	if d.Deadline() != before {
		t.Fatalf("deadline moved from %d to %d", before, d.Deadline())
	}
}

// behaves checks, for any arrivals, what the package promises: that patience stays within its
// bounds, and that phi is 8 wherever neither bound limits it.
func behaves(t *rapid.T) {
	heartbeat := time.Duration(rapid.Int64Range(1, int64(10*time.Second)).Draw(t, "heartbeat"))
	lease := heartbeat * time.Duration(rapid.IntRange(2, 20).Draw(t, "lease in heartbeats"))
	d := failuredetector.New(heartbeat, lease)
	now := election.Instant(rapid.Int64Range(0, 1<<50).Draw(t, "start"))
	intervals := []float64{0.75 * float64(heartbeat), 1.25 * float64(heartbeat)}
	for i := range rapid.IntRange(1, 190).Draw(t, "arrivals") {
		silent := time.Duration(rapid.Int64Range(0, 2*int64(lease)).Draw(t, "interval"))
		now = now.Add(silent)
		d.Heard(now)
		if i > 0 {
			intervals = append(intervals, float64(min(silent, lease)))
		}
		trusted := silence(d, now)
		if trusted < 2*heartbeat || trusted > lease {
			t.Fatalf("trusts %s of silence, heartbeat %s, lease %s", trusted, heartbeat, lease)
		}
		if phi := phiOf(trusted, intervals, heartbeat); heartbeat > ms && trusted < lease && trusted > 2*heartbeat && math.Abs(phi-8) > 1e-3 {
			t.Fatalf("phi is %g at the deadline", phi)
		}
	}
}

// phiOf is phi after that silence: -log10 of the tail of the normal distribution.
func phiOf(silence time.Duration, intervals []float64, heartbeat time.Duration) float64 {
	sum, squares := 0.0, 0.0
	for _, i := range intervals {
		sum += i
	}
	mean := sum / float64(len(intervals))
	for _, i := range intervals {
		squares += (i - mean) * (i - mean)
	}
	deviation := max(math.Sqrt(squares/float64(len(intervals))), 0.1*float64(heartbeat))
	return -math.Log10(0.5 * math.Erfc((float64(silence)-mean)/deviation/math.Sqrt2))
}

func TestBehaves(t *testing.T) { rapid.Check(t, behaves) }

func FuzzBehaves(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(behaves))
}
