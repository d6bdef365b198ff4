package failuredetector_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/failuredetector"
)

const ms = time.Millisecond

func lan() failuredetector.Config {
	return failuredetector.Config{Heartbeat: 200 * ms, Lease: 1200 * ms}
}

func newDetector(t testing.TB, c failuredetector.Config) *failuredetector.Detector {
	t.Helper()
	d, err := failuredetector.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// silence is how long the detector trusts after the last arrival.
func silence(d *failuredetector.Detector, heard election.Instant) time.Duration {
	return d.Deadline().Sub(heard)
}

func TestWatchesNobodyAtFirst(t *testing.T) {
	d := newDetector(t, lan())
	if d.Suspects(1<<60) || d.Deadline() != election.Never {
		t.Fatalf("suspects %t, deadline %d", d.Suspects(1<<60), d.Deadline())
	}
}

// TestPriorIsTheHeartbeat shows what a detector assumes that heard nothing yet:
// intervals of a heartbeat with a deviation of a quarter.
func TestPriorIsTheHeartbeat(t *testing.T) {
	d := newDetector(t, lan())
	d.Heard(1000)
	want := 200*ms + time.Duration(5.612*float64(50*ms)) // phi 8 is 5.612 deviations
	if got := silence(d, 1000); (got - want).Abs() > ms {
		t.Fatalf("trusts %s of silence, want %s", got, want)
	}
}

// TestRegularArrivals shows the lower bound: however regular the arrivals are,
// two intervals of silence are never suspect.
func TestRegularArrivals(t *testing.T) {
	d := newDetector(t, lan())
	now := election.Instant(0)
	for range 3 * failuredetector.Window {
		d.Heard(now)
		if d.Suspects(now.Add(400*ms - 1)) {
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
	d := newDetector(t, lan())
	now := election.Instant(0)
	arrive := func(intervals ...time.Duration) {
		for range failuredetector.Window {
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

// TestLongPauseIsForgiven shows that one pause, of a suspended host say, does
// not blind the detector for long.
func TestLongPauseIsForgiven(t *testing.T) {
	d := newDetector(t, lan())
	now := election.Instant(0)
	for range failuredetector.Window {
		now = now.Add(200 * ms)
		d.Heard(now)
	}
	now = now.Add(8 * time.Hour)
	if !d.Suspects(now) {
		t.Fatal("trusts after eight hours of silence")
	}
	d.Heard(now)
	if d.Suspects(now) {
		t.Fatal("suspects an agent just heard")
	}
	if got := silence(d, now); got > 700*ms {
		t.Fatalf("trusts %s of silence after one pause", got)
	}
}

func TestFixedDeadline(t *testing.T) {
	c := lan()
	c.Policy, c.Deadline = failuredetector.FixedDeadline, 500*ms
	d := newDetector(t, c)
	for _, at := range []time.Duration{0, 10 * ms, 900 * ms} {
		heard := election.Instant(at)
		d.Heard(heard)
		if d.Suspects(heard.Add(500*ms-1)) || !d.Suspects(heard.Add(500*ms)) {
			t.Fatalf("heard at %s: deadline %d", at, d.Deadline())
		}
	}
}

// TestClockBackwards shows that an arrival before the last one changes nothing.
func TestClockBackwards(t *testing.T) {
	d := newDetector(t, lan())
	d.Heard(election.Instant(time.Second))
	before := d.Deadline()
	d.Heard(0)
	if d.Deadline() != before {
		t.Fatalf("deadline moved from %d to %d", before, d.Deadline())
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*failuredetector.Config)
		want   string
	}{
		{"defaults", func(*failuredetector.Config) {}, ""},
		{"no heartbeat", func(c *failuredetector.Config) { c.Heartbeat = 0 }, "heartbeat"},
		{"heartbeat overflows", func(c *failuredetector.Config) { c.Heartbeat = math.MaxInt64 }, "lease"},
		{"lease too short", func(c *failuredetector.Config) { c.Lease = 399 * ms }, "lease"},
		{"unknown policy", func(c *failuredetector.Config) { c.Policy = 9 }, "policy"},
		{"no deadline", func(c *failuredetector.Config) { c.Policy = failuredetector.FixedDeadline }, "deadline"},
		{"deadline above lease", func(c *failuredetector.Config) {
			c.Policy, c.Deadline = failuredetector.FixedDeadline, 2*time.Second
		}, "deadline"},
		{"threshold not a number", func(c *failuredetector.Config) { c.Threshold = math.NaN() }, "threshold"},
		{"threshold negative", func(c *failuredetector.Config) { c.Threshold = -1 }, "threshold"},
		{"threshold infinite", func(c *failuredetector.Config) { c.Threshold = math.Inf(1) }, "threshold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := lan()
			c.change(&config)
			_, err := failuredetector.New(config)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v, want one about %q", err, c.want)
			}
		})
	}
}

// behaves checks, for any arrivals, what the package promises: the bounds, that
// Deadline and Suspects say the same, that phi grows with silence, and that it
// is at the threshold where neither bound binds.
func behaves(t *rapid.T) {
	c := failuredetector.Config{
		Heartbeat: time.Duration(rapid.Int64Range(1, int64(10*time.Second)).Draw(t, "heartbeat")),
		Threshold: rapid.Float64Range(1, 100).Draw(t, "threshold"),
	}
	c.Lease = c.Heartbeat * time.Duration(rapid.IntRange(2, 20).Draw(t, "lease in heartbeats"))
	d, err := failuredetector.New(c)
	if err != nil {
		t.Fatal(err)
	}
	now := election.Instant(rapid.Int64Range(0, 1<<50).Draw(t, "start"))
	for range rapid.IntRange(1, 300).Draw(t, "arrivals") {
		now = now.Add(time.Duration(rapid.Int64Range(0, 2*int64(c.Lease)).Draw(t, "interval")))
		d.Heard(now)
		trusted := silence(d, now)
		if trusted < failuredetector.MinIntervals*c.Heartbeat || trusted > c.Lease {
			t.Fatalf("trusts %s of silence, heartbeat %s, lease %s", trusted, c.Heartbeat, c.Lease)
		}
		if d.Suspects(d.Deadline()-1) || !d.Suspects(d.Deadline()) {
			t.Fatalf("deadline %d, suspects before %t, at it %t", d.Deadline(), d.Suspects(d.Deadline()-1), d.Suspects(d.Deadline()))
		}
		half, full := d.Phi(now.Add(trusted/2)), d.Phi(d.Deadline())
		if half > full || math.IsNaN(full) {
			t.Fatalf("phi falls from %g to %g", half, full)
		}
		bound := trusted == c.Lease || trusted == failuredetector.MinIntervals*c.Heartbeat
		if before := d.Phi(d.Deadline() - 2); !bound && (before > c.Threshold+1e-6 || full < c.Threshold-1e-6) {
			t.Fatalf("phi is %g before the deadline and %g at it, threshold %g", before, full, c.Threshold)
		}
	}
}

func TestBehaves(t *testing.T) { rapid.Check(t, behaves) }

func FuzzBehaves(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(behaves))
}

// TestPhiIsTheNormalTail compares phi with tabulated values of the normal
// distribution: one, two, three and six deviations above the mean.
func TestPhiIsTheNormalTail(t *testing.T) {
	d := newDetector(t, lan())
	d.Heard(0) // mean 200 ms, deviation 50 ms
	for deviations, tail := range map[int]float64{1: 0.158655, 2: 0.0227501, 3: 0.00134990, 6: 9.86588e-10} {
		at := election.Instant(200*ms + time.Duration(deviations)*50*ms)
		if got, want := d.Phi(at), -math.Log10(tail); math.Abs(got-want) > 1e-4 {
			t.Errorf("phi at %d deviations is %g, want %g", deviations, got, want)
		}
	}
}

// TestRegularArrivalsKeepADeviation shows that phi stays meaningful where the
// observed deviation is nil: a tenth of the heartbeat is assumed.
func TestRegularArrivalsKeepADeviation(t *testing.T) {
	d := newDetector(t, lan())
	now := election.Instant(0)
	for range 2 * failuredetector.Window {
		now = now.Add(200 * ms)
		d.Heard(now)
	}
	if got, want := d.Phi(now.Add(220*ms)), 0.79955; math.Abs(got-want) > 1e-4 {
		t.Errorf("phi one assumed deviation late is %g, want %g", got, want)
	}
}
