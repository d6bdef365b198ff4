package transport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/internal/door"
	"github.com/doyen-election/doyen/testbed/loopbacks"
)

// answer lets an inbound handshake from the address wait for its turn in the
// background, and notes the address once it has begun.
func answer(h *handshakes, began *[]string, from string, u urgency) (end func(timedOut bool)) {
	return inBackground(h, began, from, func() (*handshake, error) {
		return h.answer(context.Background(), netip.MustParseAddr(from), place{peers: 1, of: 9, first: u == first}.always)
	})
}

func TestOneAddressHasAQuarterOfTheHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const silent, other = "10.0.0.1", "10.0.0.2"
		for limit, want := range map[int]int{handshakesFew: 1, handshakesFirst: 2, handshakesMany: 16} {
			h := newHandshakes(2 * time.Second)
			h.limit = limit
			var began []string
			var ends []func(bool)
			for range limit {
				ends = append(ends, answer(h, &began, silent, first))
			}
			if len(began) != want {
				t.Errorf("%d of %d began from one address, want %d", len(began), limit, want)
			}
			began = nil
			ends = append(ends, answer(h, &began, other, inTurn))
			if !slices.Equal(began, []string{other}) {
				t.Errorf("of %d at once, those of one address keep one from another waiting", limit)
			}
			for _, end := range ends {
				end(false)
			}
			if s := h.sources[netip.MustParseAddr(silent)]; s.underWay != 0 || h.underWay != 0 {
				t.Errorf("%d under way, %d from one address, want none", h.underWay, s.underWay)
			}
		}
	})
}

func TestAddressesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandshakes(2 * time.Second)
		h.limit = handshakesFew
		var began []string
		var ends []func(bool)
		for i := range 3 * handshakesFew { // many from a few addresses
			ends = append(ends, answer(h, &began, fmt.Sprintf("10.0.0.%d", i%handshakesFew+1), inTurn))
		}
		ends = append(ends, answer(h, &began, "10.0.0.9", inTurn), answer(h, &began, "10.0.0.8", first))
		began = nil
		<-time.After(time.Second) // neither quick nor slow: as many as before
		for _, end := range ends[:3] {
			end(false)
		}
		if want := []string{"10.0.0.8", "10.0.0.9", "10.0.0.1"}; !slices.Equal(began, want) {
			t.Errorf("they began in the order %v, want a first one, one whose address had no turn yet, the one whose turn was longest ago: %v", began, want)
		}
		for _, end := range ends[3:] {
			end(false)
		}
	})
}

func TestAnAddressWhoseHandshakeTimedOutIsDoubtful(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandshakes(2 * time.Second)
		h.limit = handshakesMany
		var began []string
		for i, step := range []struct {
			timedOut bool
			limit    int
		}{
			{true, handshakesMany / 2},
			{true, handshakesMany / 2}, // says nothing new
			{false, handshakesMany / 2},
			{true, handshakesMany / 4},
		} {
			answer(h, &began, "10.0.0.1", inTurn)(step.timedOut)
			if h.limit != step.limit || h.sources[netip.MustParseAddr("10.0.0.1")].doubtful != step.timedOut {
				t.Errorf("after %d: %d at once, from %v, want %d", i+1, h.limit, h.sources, step.limit)
			}
		}
		// All doubtful addresses together leave half of the places to the others.
		var ends []func(bool)
		for i := range 3 * handshakesMany {
			answer(h, &began, fmt.Sprintf("10.1.0.%d", i+1), inTurn)(true)
		}
		if len(h.sources) > door.Unproven {
			t.Errorf("%d addresses are remembered, want at most %d", len(h.sources), door.Unproven)
		}
		began = nil
		for i := range h.limit {
			ends = append(ends, answer(h, &began, fmt.Sprintf("10.1.0.%d", i+1), first))
		}
		if len(began) != h.limit/2 {
			t.Errorf("%d doubtful ones of %d at once, want %d", len(began), h.limit, h.limit/2)
		}
		for _, end := range ends {
			end(false)
		}
	})
}

// TestManyAgentsBehindOneAddressAllGetTheirTurn: containers of one host may share
// its address, and start together.
func TestManyAgentsBehindOneAddressAllGetTheirTurn(t *testing.T) {
	for _, c := range []struct {
		took, most time.Duration
	}{
		{2 * time.Millisecond, 100 * time.Millisecond},
		{300 * time.Millisecond, 2 * time.Second}, // far away
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHandshakes(limitsFor(0).greet)
			began := time.Now()
			for range 60 {
				go func() {
					one, err := h.answer(t.Context(), netip.MustParseAddr("10.0.0.1"), place{peers: 60, of: 62}.always)
					if err != nil {
						t.Error(err)
						return
					}
					<-time.After(c.took)
					h.end(one, false)
				}()
			}
			synctest.Wait()
			left := func() int {
				h.mu.Lock()
				defer h.mu.Unlock()
				return h.underWay
			}
			for left() > 0 {
				<-time.After(c.took)
				synctest.Wait()
			}
			if all := time.Since(began); all > c.most {
				t.Errorf("60 handshakes of %s took %s, want at most %s", c.took, all, c.most)
			}
		})
	}
}

// TestSilentConnectionsFromOneMemberDelayNoOther: a stranger at the address of a member, without a key,
// agrees on Noise and then sends nothing. No handshake times out here: the limits are those of a heartbeat
// of minutes.
func TestSilentConnectionsFromOneMemberDelayNoOther(t *testing.T) {
	loopbacks.NeedTwo(t)
	ids := identities(t, 3)
	hello := helloOf("b", 2)
	hello.Heartbeat = time.Minute
	b := start(t, Config{Key: ids[2].key, Hello: hello})
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	member := netip.MustParseAddrPort("127.88.0.2:1")
	b.SetPeers([]Peer{at(a), {ID: ids[1].id, Addr: member, First: true}})
	const many = 3 * handshakesFirst
	from := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(member.Addr(), 0))}
	for range many {
		c, err := from.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := c.Write([]byte("\x13/multistream/1.0.0\n\x07/noise\n")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "silent handshakes", func() bool {
		b.answering.mu.Lock()
		defer b.answering.mu.Unlock()
		return b.answering.underWay+len(b.answering.waiting) == many
	})
	a.SetPeers([]Peer{at(b)})
	await[Connected](t, a)
	await[Connected](t, b)
}
