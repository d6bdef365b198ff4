package membership

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// run lets the joiner work for that long in virtual time.
func run(t *testing.T, j *joiner, d time.Duration, listed map[netip.AddrPort]bool) {
	t.Helper()
	end := time.After(d)
	timer := time.NewTimer(0)
	for {
		select {
		case <-end:
			for _, target := range j.targets {
				for target.busy {
					j.finish(<-j.done, time.Now(), "test")
				}
			}
			return
		case <-timer.C:
		case r := <-j.done:
			j.finish(r, time.Now(), "test")
		}
		timer.Reset(time.Until(j.start(t.Context(), time.Now(), listed)))
	}
}

// testJoiner records when its join is called.
func testJoiner(seeds []seed, outcome error) (*joiner, func() []time.Duration) {
	began := time.Now()
	var mu sync.Mutex
	var tried []time.Duration
	lan, _ := PaceLAN.timing()
	j := newJoiner(lan, seeds, began, func(netip.AddrPort) bool { return false }, func(string) error {
		mu.Lock()
		defer mu.Unlock()
		tried = append(tried, time.Since(began))
		return outcome
	}, &sync.WaitGroup{})
	return j, func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return tried
	}
}

func longestPause(tried []time.Duration, from time.Duration) time.Duration {
	var longest time.Duration
	for i := 1; i < len(tried); i++ {
		if tried[i] >= from {
			longest = max(longest, tried[i]-tried[i-1])
		}
	}
	return longest
}

func TestASeedIsTriedForEverWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, tried := testJoiner([]seed{{"10.0.0.1", 1}}, errors.New("refused"))
		run(t, j, 10*time.Minute, nil)
		got := tried()
		if got[0] != 0 || got[1] > 100*time.Millisecond {
			t.Errorf("first tries at %v, want at once and soon again", got[:2])
		}
		if p := longestPause(got, 0); p > 3*time.Second {
			t.Errorf("longest pause %s, want at most 3s", p)
		}
		if len(got) > 500 {
			t.Errorf("%d tries in 10 minutes: no back-off", len(got))
		}
		// Left alone, it hurries again.
		j.hurry(time.Now())
		before := len(tried())
		run(t, j, time.Second, nil)
		if n := len(tried()) - before; n < 10 {
			t.Errorf("%d tries in the second after members were lost", n)
		}
	})
}

func TestALostMemberIsLookedForTwiceASecondAndLaterMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, tried := testJoiner(nil, errors.New("refused"))
		addr := netip.MustParseAddrPort("10.0.0.1:1")
		j.seek(map[netip.AddrPort]time.Time{addr: time.Now()}, time.Now())
		run(t, j, 9*time.Minute, nil)
		if p := longestPause(tried(), 0); p > 500*time.Millisecond {
			t.Errorf("longest pause %s, want at most 500ms", p)
		}
		run(t, j, 11*time.Minute, nil)
		if p := longestPause(tried(), 15*time.Minute); p != 5*time.Second {
			t.Errorf("longest pause later %s, want 5s", p)
		}
		j.seek(nil, time.Now())
		if len(j.targets) != 0 {
			t.Error("a member no longer lost is still looked for")
		}
	})
}

func TestWhatIsInTheListIsNotJoinedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, tried := testJoiner([]seed{{"10.0.0.1", 1}}, nil)
		addr := netip.MustParseAddrPort("10.0.0.1:1")
		run(t, j, time.Minute, map[netip.AddrPort]bool{addr: true})
		if n := len(tried()); n != 0 {
			t.Errorf("joined %d times", n)
		}
		run(t, j, 2*time.Second, nil) // it is gone
		if n := len(tried()); n != 1 {
			t.Errorf("joined %d times, want once: it answered", n)
		}
	})
}

func TestNamesAreResolvedAgainAtEachTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, tried := testJoiner([]seed{{"seed.example.org", 1}}, errors.New("refused"))
		asked := 0
		j.resolve = func(context.Context, string) ([]netip.Addr, error) {
			asked++ // one try at a time
			if asked == 1 {
				return nil, errors.New("no such host")
			}
			return []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(asked)})}, nil
		}
		run(t, j, time.Second, nil)
		if n := len(tried()); asked < 10 || n != asked-1 {
			t.Errorf("asked %d times, tried %d times", asked, n)
		}
	})
}

func TestAFailedJoinIsExplained(t *testing.T) {
	for words, want := range map[string]string{
		"failed to join 10.0.0.1:7946: EOF":                                  "another cluster than test",
		"read tcp 10.0.0.2:1->10.0.0.1:7946: read: connection reset by peer": "another cluster than test",
		(&fault{faultMessage, "no agent sends a stream of kind 72"}).Error(): "does not answer like an agent",
		"dial tcp 10.0.0.1:7946: connect: connection refused":                "",
		"dial tcp 10.0.0.1:7946: i/o timeout":                                "",
	} {
		if got := oddity(errors.New(words), "test"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

func TestASeedThatNeverAnswersIsNamedWithItsReason(t *testing.T) {
	var running sync.WaitGroup
	began := time.Now()
	j := newJoiner(mustTiming(t), []seed{{host: "nosuch.invalid", port: 1}}, began, func(netip.AddrPort) bool { return false }, nil, &running)
	key := "seed nosuch.invalid:1"
	j.finish(attempt{key: key, err: &net.DNSError{Err: "no such host", Name: "nosuch.invalid"}}, began, "c")
	if got := j.unreached(began.Add(unreachedFor - time.Second)); len(got) != 0 {
		t.Fatalf("named at once: %+v", got)
	}
	got := j.unreached(began.Add(unreachedFor))
	if len(got) != 1 || got[0].Name != "nosuch.invalid:1" || got[0].Err.Error() != "no such host" {
		t.Fatalf("got %+v, want the seed and its reason", got)
	}
	addr := netip.MustParseAddrPort("127.0.0.1:1")
	j.finish(attempt{key: key, found: []netip.AddrPort{addr}, tried: map[netip.AddrPort]error{addr: nil}}, began, "c")
	if got := j.unreached(began.Add(time.Hour)); len(got) != 0 {
		t.Fatalf("still named after it answered: %+v", got)
	}
}

func mustTiming(t *testing.T) timing {
	t.Helper()
	timing, err := PaceLAN.timing()
	if err != nil {
		t.Fatal(err)
	}
	return timing
}
