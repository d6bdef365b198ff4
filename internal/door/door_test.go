package door

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

func TestASourceHasAShareAndFavouredOnesAReserve(t *testing.T) {
	p := NewPlaces[string](10, 2)
	for i := range 3 {
		if err := p.Enter("a", 1, 3, false); err != nil {
			t.Fatalf("place %d: %v", i+1, err)
		}
	}
	if err := p.Enter("a", 1, 3, false); !errors.Is(err, ErrShare) {
		t.Errorf("beyond its share: %v", err)
	}
	if err := p.Enter("b", 6, 0, false); !errors.Is(err, ErrFull) {
		t.Errorf("into the reserve: %v", err)
	}
	if err := errors.Join(p.Enter("b", 5, 0, false), p.Enter("root", 2, 0, true)); err != nil {
		t.Errorf("up to the bounds: %v", err)
	}
	if err := p.Enter("root", 1, 0, true); !errors.Is(err, ErrFull) {
		t.Errorf("beyond the total: %v", err)
	}
	p.Leave("b", 5)
	p.Leave("root", 2)
	p.Free(3) // the places still count for their source
	if err := p.Enter("a", 1, 3, false); !errors.Is(err, ErrShare) {
		t.Errorf("places that still count for their source: %v", err)
	}
	p.Forgive("a", 3)
	if places, sources := p.Taken(); places != 0 || sources != 0 {
		t.Errorf("left over: %d places of %d sources", places, sources)
	}
}

func TestANetworkIsOneSource(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1": "10.0.0.1/32", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "::ffff:10.0.0.1": "10.0.0.1/32", "fe80::1%lo": "fe80::/64",
	} {
		if got := Network(netip.MustParseAddr(addr)).String(); got != want {
			t.Errorf("%s counts for %s, want %s", addr, got, want)
		}
	}
	if Network(netip.Addr{}).IsValid() {
		t.Error("no address is a source")
	}
}

func TestASourceKeepsToItsPace(t *testing.T) {
	p := NewPace[int](2, 3)
	second := election.Instant(time.Second)
	for _, c := range []struct {
		now          election.Instant
		source, want int
	}{{0, 1, 3}, {0, 1, 0}, {0, 2, 3}, {second / 2, 1, 1}, {100 * second, 1, 3}} {
		got := 0
		for p.Take(c.now, c.source, 1) {
			got++
		}
		if got != c.want {
			t.Errorf("at %d source %d may %d times, want %d", c.now, c.source, got, c.want)
		}
	}
	if p.Take(200*second, 1, 4) || p.Left(200*second, 1) != 3 {
		t.Error("more than the burst was taken, or counted")
	}
}

func TestFewSourcesAreRemembered(t *testing.T) {
	p := NewPace[int](1, 1)
	for i := range 5 * maxSources {
		p.Take(0, i, 1)
	}
	if len(p.of) > maxSources {
		t.Errorf("%d sources are remembered", len(p.of))
	}
	p.Take(0, -1, 1)
	for i := range maxSources {
		p.Take(election.Instant(time.Duration(i)*time.Second), i, 1)
	}
	if _, known := p.of[maxSources-1]; !known {
		t.Error("one that has not rested was forgotten, though others had")
	}
}

func TestWhatWasSpentIsMadeUpForFirst(t *testing.T) {
	p := NewPace[int](10, 3)
	p.Spend(0, 1, 2)
	p.Spend(0, 1, 100) // at most a burst counts
	if left := p.Left(0, 1); left != -2 {
		t.Errorf("%g are left", left)
	}
	tenth := election.Instant(time.Second / 10)
	if p.Take(2*tenth, 1, 1) || !p.Take(3*tenth, 1, 1) {
		t.Error("it may go on too early, or too late")
	}
}
