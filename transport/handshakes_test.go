package transport

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// noting guards the names that tests note from several goroutines.
var noting sync.Mutex

func hasBegun(began *[]string, name string) {
	noting.Lock()
	defer noting.Unlock()
	*began = append(*began, name)
}

// begin lets a handshake wait for its turn in the background, and notes its name
// once it has begun.
func begin(h *handshakes, began *[]string, name string, u urgency, doubtful bool) (end func(timedOut bool)) {
	return inBackground(h, began, name, func() (*handshake, error) {
		return h.begin(context.Background(), u.always, doubtful)
	})
}

func inBackground(h *handshakes, began *[]string, name string, begin func() (*handshake, error)) (end func(timedOut bool)) {
	var one *handshake
	go func() {
		one, _ = begin()
		hasBegun(began, name)
	}()
	synctest.Wait()
	return func(timedOut bool) {
		h.end(one, timedOut)
		synctest.Wait()
	}
}

func TestHandshakesBeginInOrderVotersFirstAndNeverTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandshakes(2 * time.Second)
		var began []string
		var ends []func(bool)
		for range handshakesFirst {
			ends = append(ends, begin(h, &began, "early", inTurn, false))
		}
		began = nil
		b := begin(h, &began, "b", inTurn, false)
		c := begin(h, &began, "c", inTurn, false)
		voter := begin(h, &began, "voter", first, false)
		if len(began) > 0 {
			t.Fatalf("%v began beside %d others", began, handshakesFirst)
		}
		<-time.After(time.Second) // neither quick nor slow: the limit stays
		for _, end := range ends[:3] {
			end(false)
		}
		if want := []string{"voter", "b", "c"}; !slices.Equal(began, want) {
			t.Errorf("they began in the order %v, want %v", began, want)
		}
		if h.peak != handshakesFirst {
			t.Errorf("%d were under way at once, want at most %d", h.peak, handshakesFirst)
		}
		for _, end := range append(ends[3:], b, c, voter) {
			end(false)
		}
	})
}

func TestAPeerThatTimedOutTakesAtMostHalfOfTheHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandshakes(2 * time.Second)
		var began []string
		var ends []func(bool)
		for range handshakesFirst {
			ends = append(ends, begin(h, &began, "doubtful", first, true))
		}
		if len(began) != handshakesFirst/2 {
			t.Fatalf("%d doubtful ones began, want %d", len(began), handshakesFirst/2)
		}
		began = nil
		good := begin(h, &began, "good", inTurn, false)
		if !slices.Equal(began, []string{"good"}) {
			t.Errorf("those that may never succeed keep one waiting that will")
		}
		for _, end := range append(ends, good) {
			end(false)
		}
	})
}

func TestTheNumberOfHandshakesFollowsFromHowLongTheyTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandshakes(2 * time.Second)
		for _, step := range []struct {
			what     string
			took     time.Duration
			timedOut bool
			doubtful bool
			want     int
		}{
			{"a quick one", time.Millisecond, false, false, handshakesFirst + 1},
			{"one that took its time", 700 * time.Millisecond, false, false, handshakesFirst + 1},
			{"a slow one", 1500 * time.Millisecond, false, false, handshakesFirst},
			{"one with a peer that is known to be slow", 4 * time.Second, true, true, handshakesFirst},
			{"one that timed out", 2 * time.Second, true, false, handshakesFirst / 2},
			{"another, at the least there may be", 2 * time.Second, true, false, handshakesFew},
		} {
			one, err := h.begin(t.Context(), inTurn.always, step.doubtful)
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(step.took)
			h.end(one, step.timedOut)
			if h.limit != step.want {
				t.Errorf("after %s there may be %d at once, want %d", step.what, h.limit, step.want)
			}
		}
		for range 1000 {
			one, _ := h.begin(t.Context(), inTurn.always, false)
			h.end(one, false)
		}
		if h.limit != handshakesMany {
			t.Errorf("%d at once on an idle machine, want %d", h.limit, handshakesMany)
		}
	})
}

func TestAHandshakeThatIsNotWaitedForAnyMoreTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandshakes(2 * time.Second)
		h.limit = 1
		var began []string
		end := begin(h, &began, "one", inTurn, false)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		var err error
		go func() { _, err = h.begin(ctx, first.always, false) }()
		synctest.Wait()
		cancel(gone)
		synctest.Wait()
		if !errors.Is(err, gone) {
			t.Errorf("the one that left got %v, want %v", err, gone)
		}
		end(false)
		if h.underWay != 0 || len(h.waiting) != 0 {
			t.Errorf("%d under way, %d waiting, want none", h.underWay, len(h.waiting))
		}
	})
}

func TestOnlyAnAttemptThatTimesOutBacksOff(t *testing.T) {
	now := func() *link {
		return &link{interval: redialMin, began: time.Now().Add(-time.Hour)}
	}
	refused := outcome{err: syscall.ECONNREFUSED}
	slow := outcome{err: context.DeadlineExceeded, tooSlow: true}
	hungUp := outcome{err: syscall.ECONNRESET, hungUp: true}
	l := now()
	for i := range 20 {
		if pause := l.pause(refused, false); pause > redialMax {
			t.Fatalf("after %d refused dials the next comes in %s, want at most %s", i+1, pause, redialMax)
		}
	}
	l = now()
	var longest time.Duration
	for i := range 20 {
		pause := l.pause(slow, false)
		if least := min(redialSlow<<min(i, 8), redialSlowest) / 2; pause < least || pause > redialSlowest {
			t.Fatalf("after %d attempts that timed out the next comes in %s, want %s to %s", i+1, pause, least, redialSlowest)
		}
		longest = max(longest, pause)
	}
	if longest <= redialSlowest/2 {
		t.Errorf("the longest pause was %s: all would come again together", longest)
	}
	l = now()
	for i := range 20 {
		pause := l.pause(hungUp, false)
		if often := i < redialOften; often != (pause <= redialMax) {
			t.Fatalf("after a peer hung up %d times it is dialled in %s", i+1, pause)
		}
		if least := min(redialRefused<<min(max(0, i-redialOften), 8), redialStranger) / 2; i >= redialOften && (pause < least || pause > 3*least) {
			t.Fatalf("after a peer hung up %d times it is dialled in %s, want %s to %s", i+1, pause, least, 3*least)
		}
	}
}

// deaf accepts connections and says nothing, like a frozen process.
func deaf(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return netip.MustParseAddrPort(l.Addr().String())
}

func TestManyPeersThatDoNotAnswerDelayNobody(t *testing.T) {
	ids := identities(t, 41)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	frozen := deaf(t)
	var peers []Peer
	for _, id := range ids[2:] {
		peers = append(peers, Peer{ID: id.id, Addr: frozen})
	}
	a.SetPeers(peers)
	eventually(t, "dials", func() bool { return a.Stats().Dials >= uint64(len(peers)) })
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	b.SetPeers([]Peer{at(a)})
	voter := at(b)
	voter.First = true
	a.SetPeers(append(peers, voter))
	await[Connected](t, a)
	await[Connected](t, b)
	a.dialling.mu.Lock()
	defer a.dialling.mu.Unlock()
	if a.dialling.peak > handshakesFirst {
		t.Errorf("%d dials were under way at once, want at most %d", a.dialling.peak, handshakesFirst)
	}
}

// TestHandshakesThatCanWaitRestAfterASlowOne shows that only one handshake that can wait is under way at a
// time, and that a long rest follows if it was slow, or if the process runs late. Other handshakes do not wait,
// nor does one that becomes urgent meanwhile.
func TestHandshakesThatCanWaitRestAfterASlowOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandshakes(2 * time.Second)
		late := time.Duration(0)
		h.late = func(time.Time) time.Duration { return late }
		var began []string
		expect := func(after time.Duration, want ...string) {
			t.Helper()
			<-time.After(after)
			synctest.Wait()
			noting.Lock()
			defer noting.Unlock()
			if !slices.Equal(began, want) {
				t.Fatalf("%v began, want %v", began, want)
			}
			began = nil
		}
		var needed atomic.Int32
		needed.Store(int32(later))
		one := begin(h, &began, "one", later, false)
		two := begin(h, &began, "two", later, false)
		three := begin(h, &began, "three", later, false)
		var four *handshake
		go func() {
			four, _ = h.begin(context.Background(), func() urgency { return urgency(needed.Load()) }, false)
			hasBegun(&began, "four")
		}()
		other := begin(h, &began, "other", inTurn, false)
		expect(0, "one", "other")
		one(false) // quick
		expect(restMin-1, []string(nil)...)
		expect(1, "two")
		<-time.After(h.slow / 2)
		two(false) // slow
		expect(restFactor*h.slow/4, []string(nil)...)
		needed.Store(int32(inTurn))
		h.look()
		expect(0, "four")
		expect(restMost, "three")
		late = 10 * restLate
		last := begin(h, &began, "last", later, false)
		three(false) // slow, and the process is late
		expect(restMost+restFactor*late-1, []string(nil)...)
		expect(1, "last")
		last(false)
		other(false)
		h.end(four, false)
		<-time.After(2 * restMost)
	})
}
