package netns

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func newLane(l Link, seed uint64) *lane { return &lane{link: l, rng: rand.New(rand.NewPCG(seed, 0))} }

// judged sends packets of 1000 bytes at an interval. It returns when their copies arrive, in the
// order in which they were sent.
func judged(l *lane, count int, every time.Duration) (arrivals []time.Duration) {
	for i := range count {
		f := l.judge(time.Duration(i)*every, ofSize(1000))
		arrivals = append(arrivals, f.at[:f.n]...)
		for range f.n {
			if l.queued > 0 {
				l.arrived()
			}
		}
	}
	return arrivals
}

func TestAPerfectLinkDelaysNothing(t *testing.T) {
	l := newLane(Link{}, 1)
	arrivals := judged(l, 100, time.Millisecond)
	for i, at := range arrivals {
		if at != time.Duration(i)*time.Millisecond {
			t.Fatalf("packet %d arrives at %s", i, at)
		}
	}
	if len(arrivals) != 100 {
		t.Errorf("%d of 100 packets arrive", len(arrivals))
	}
}

func TestSharesOfRandomFaultsAreAsSet(t *testing.T) {
	const packets = 20_000
	l := newLane(Link{Delay: time.Millisecond, Loss: 0.1, Duplicate: 0.05}, 2)
	var copies [3]int // how many packets arrive never, once and twice
	for i := range packets {
		f := l.judge(time.Duration(i)*time.Millisecond, ofSize(1000))
		copies[f.n]++
		for range f.n {
			l.arrived()
		}
	}
	near := func(what string, got int, want float64) {
		t.Helper()
		if off := math.Abs(float64(got) - want); off > 5*math.Sqrt(want) {
			t.Errorf("%s: %d, want some %.0f", what, got, want)
		}
	}
	near("lost", copies[0], 0.1*packets)
	near("duplicated", copies[2], 0.05*0.9*packets)
}

func TestJitterKeepsTheOrderAndReorderDoesNot(t *testing.T) {
	link := Link{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond}
	arrivals := judged(newLane(link, 3), 1000, 100*time.Microsecond)
	if !slices.IsSorted(arrivals) {
		t.Error("jitter alone let packets overtake")
	}
	for i, at := range arrivals {
		sent := time.Duration(i) * 100 * time.Microsecond
		if late := at - sent; late < link.Delay || late > link.Delay+link.Jitter {
			t.Fatalf("packet %d took %s", i, late)
		}
	}
	link.Reorder = 0.1
	overtaken, highest := 0, time.Duration(0)
	for _, at := range judged(newLane(link, 3), 1000, time.Millisecond) {
		if at < highest {
			overtaken++
		}
		highest = max(highest, at)
	}
	if overtaken < 100 {
		t.Errorf("with a tenth held back, %d packets came after later ones", overtaken)
	}
}

func TestARateSpacesPacketsAndItsQueueIsBounded(t *testing.T) {
	l := newLane(Link{Rate: 1_000_000}, 4) // a packet of 1000 bytes takes 1 ms
	for i := range 10 {
		f := l.judge(0, ofSize(1000))
		if want := time.Duration(i+1) * time.Millisecond; f.n != 1 || f.at[0] != want {
			t.Fatalf("packet %d arrives at %s, want %s", i, f.at[0], want)
		}
	}
	slow := newLane(Link{Rate: 1000}, 4) // a packet takes a second
	fit := func(l *lane, count int) (n int) {
		for range count {
			n += l.judge(0, ofSize(1000)).n
		}
		return n
	}
	if n := fit(slow, 10); n != 3 {
		t.Errorf("%d of 10 fit into a backlog of %s, want 3", n, maxBacklog)
	}
	full := newLane(Link{Delay: time.Second}, 4)
	if n := fit(full, maxQueued+5); n != maxQueued || full.queued != maxQueued {
		t.Errorf("%d wait, %d fit, want %d", full.queued, n, maxQueued)
	}
}

func TestACutTakesWhatIsOnItsWay(t *testing.T) {
	l := newLane(Link{Delay: time.Second}, 5)
	l.judge(0, ofSize(1000))
	l.set(Link{Cut: true}, 0)
	if l.arrived() {
		t.Error("it arrived")
	}
}

func TestTheSameSeedGivesTheSameFaults(t *testing.T) {
	link := Link{Delay: time.Millisecond, Jitter: time.Millisecond, Loss: 0.2, Duplicate: 0.1, Reorder: 0.1}
	first := judged(newLane(link, 6), 1000, time.Millisecond)
	if !slices.Equal(first, judged(newLane(link, 6), 1000, time.Millisecond)) {
		t.Error("the same seed gave other faults")
	}
	if slices.Equal(first, judged(newLane(link, 7), 1000, time.Millisecond)) {
		t.Error("another seed gave the same faults")
	}
}

func TestLinksThatCantBeAreRefused(t *testing.T) {
	for _, l := range []Link{
		{Loss: -0.1}, {Loss: 1.1}, {Loss: math.NaN()}, {Duplicate: 2}, {Reorder: -1},
		{Delay: -1}, {Delay: time.Hour}, {Jitter: -1}, {Rate: -1},
	} {
		if l.Validate() == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
	if err := (Link{Delay: time.Second, Loss: 1, Rate: 1}).Validate(); err != nil {
		t.Error(err)
	}
}

// ofSize is an IPv4 packet of so many bytes.
func ofSize(n int) []byte {
	packet := make([]byte, n)
	packet[0] = 0x45
	return packet
}

func TestAClosedPortLosesWhatIsForItAndNothingElse(t *testing.T) {
	link := Link{Port: 7946}
	for _, c := range []struct {
		name     string
		protocol byte
		from, to uint16
		lost     bool
	}{
		{"a datagram to it", 17, 40000, 7946, true},
		{"a segment from it", 6, 7946, 40000, true},
		{"the port beside it", 6, 40000, 7947, false},
		{"what has no ports", 1, 7946, 7946, false},
	} {
		packet := ofSize(40)
		packet[9] = c.protocol
		binary.BigEndian.PutUint16(packet[20:], c.from)
		binary.BigEndian.PutUint16(packet[22:], c.to)
		if link.closes(packet) != c.lost {
			t.Errorf("%s: lost is %v, want %v", c.name, !c.lost, c.lost)
		}
		if link.closes(packet[:22]) || (Link{}).closes(packet) {
			t.Errorf("%s: half a header, or a link with no closed port, loses it", c.name)
		}
	}
}
