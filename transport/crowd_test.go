package transport

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/internal/door"
	"github.com/doyen-election/doyen/testbed/loopbacks"
)

func TestWhileVotersGoFirstNoOtherHandshakeBegins(t *testing.T) {
	for _, c := range []struct {
		what string
		ends func(*handshakes)
	}{
		{"the voters have a roster", func(h *handshakes) { h.favour(false) }},
		{"it took too long", func(*handshakes) { <-time.After(onlyMost) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHandshakes(2 * time.Second)
			h.favour(true)
			var began []string
			expect := func(want ...string) {
				t.Helper()
				synctest.Wait()
				noting.Lock()
				defer noting.Unlock()
				if !slices.Equal(began, want) {
					t.Errorf("%s: %v began, want %v", c.what, began, want)
				}
			}
			ends := []func(bool){answer(h, &began, "10.0.0.1", inTurn), answer(h, &began, "10.0.0.2", first)}
			expect("10.0.0.2")
			c.ends(h)
			expect("10.0.0.2", "10.0.0.1")
			for _, end := range ends {
				end(false)
			}
			if c.ends(h); h.closed() {
				t.Errorf("once %s: others wait again", c.what)
			}
			<-time.After(onlyMost)
			if h.favour(true); h.closed() {
				t.Error("others wait a second time, or for longer than they may")
			}
		})
	}
}

// A caller's handshake begins as soon as the caller is known as a voter.
func TestACallerThatIsAVoterAfterAllNeedNotCallAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandshakes(2 * time.Second)
		h.favour(true)
		var at place
		var began []string
		end := inBackground(h, &began, "it", func() (*handshake, error) {
			return h.answer(context.Background(), netip.MustParseAddr("10.0.0.1"), func() place { return at })
		})
		if len(began) > 0 {
			t.Fatal("a stranger began")
		}
		at = place{peers: 1, of: 1, first: true}
		h.look()
		synctest.Wait()
		if len(began) == 0 {
			t.Error("it waits although it is known as a voter")
		}
		end(false)
		<-time.After(onlyMost)
	})
}

// TestAVoterWithoutARosterAnswersVotersAlone: members and strangers wait until it answers all peers.
func TestAVoterWithoutARosterAnswersVotersAlone(t *testing.T) {
	loopbacks.NeedTwo(t)
	ids := identities(t, 4)
	listen := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 89, 0, byte(i + 1)}), 0)
	}
	var all []*Transport
	for i, id := range ids {
		all = append(all, start(t, Config{Key: id.key, Hello: helloOf("agent", 1), Listen: listen(i)}))
		admits(all[i])
	}
	voterA, member, stranger, own := all[0], all[1], all[2], all[3]
	known := []Peer{voter(voterA)[0], at(member)}
	own.SetPeers(known)
	own.VotersOnly(true)
	for _, other := range []*Transport{member, stranger, voterA} {
		other.SetPeers(voter(own))
	}
	if c := await[Connected](t, own); c.Peer != voterA.self {
		t.Fatalf("%s is connected first", c.Peer)
	}
	eventually(t, "the others to wait", func() bool {
		own.answering.mu.Lock()
		defer own.answering.mu.Unlock()
		return len(own.answering.waiting) == 2
	})
	own.VotersOnly(false)
	await[Connected](t, own)
	await[Connected](t, own)
}

func TestAnAttemptWithAVoterMayTakeLonger(t *testing.T) {
	t.Parallel()
	l := &link{t: &Transport{limits: limitsFor(0)}}
	for _, c := range []struct {
		u        urgency
		timeouts int
		want     time.Duration
	}{{inTurn, 0, 2 * time.Second}, {first, 0, 5 * time.Second}, {first, 1, 5 * time.Second}, {first, 2, 8 * time.Second}} {
		l.urgency.Store(int32(c.u))
		if got := l.within(c.timeouts); got != c.want {
			t.Errorf("urgency %d after %d timeouts: %s, want %s", c.u, c.timeouts, got, c.want)
		}
	}
}

// While voters go first, members that wait leave a voter the places that are kept for voters.
func TestMembersThatWaitForVotersLeaveThemPlaces(t *testing.T) {
	t.Parallel()
	ids := identities(t, 5)
	own := start(t, Config{Key: ids[0].key, Hello: helloOf("own", 1)})
	var peers []Peer
	for i, id := range ids[1:] {
		peers = append(peers, Peer{ID: id.id, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 1), First: i == 0})
	}
	own.SetPeers(peers)
	own.VotersOnly(true)
	for _, member := range peers[1:] {
		for range door.Unproven {
			_, _ = own.door.knock(t, member.Addr.Addr().String())
		}
	}
	if _, err := own.door.knock(t, peers[0].Addr.Addr().String()); err != nil {
		t.Errorf("a voter finds no place: %v", err)
	}
}
