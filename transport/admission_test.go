package transport

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"

	"github.com/doyen-election/doyen/election"
)

// admits lets the transport bring a proof that names both sides, and let in guests with such a proof.
func admits(tr *Transport) {
	tr.Admit(Admission{
		Pass: func(to election.PeerID) Pass {
			return Pass{Advert: []byte(tr.Addr().String()), Proof: []byte(tr.self + " to " + to), Gossip: netip.MustParseAddrPort("10.0.0.1:7946")}
		},
		Judge: func(from election.PeerID, p Pass) (netip.AddrPort, error) {
			if string(p.Proof) != string(from+" to "+tr.self) {
				return netip.AddrPort{}, errors.New("no proof")
			}
			return netip.ParseAddrPort(string(p.Advert))
		},
	})
}

// hostAndGuest returns two transports, of which the second dials, and the first does not know it.
func hostAndGuest(t *testing.T, lowerIsHost bool) (host, guest *Transport) {
	t.Helper()
	ids := identities(t, 2)
	if !lowerIsHost {
		ids[0], ids[1] = ids[1], ids[0]
	}
	host = start(t, Config{Key: ids[0].key, Hello: helloOf("host", 1)})
	guest = start(t, Config{Key: ids[1].key, Hello: helloOf("guest", 2)})
	return host, guest
}

func voter(tr *Transport) []Peer {
	p := at(tr)
	p.First = true
	return []Peer{p}
}

func TestAGuestIsLetInWhicheverIDIsLower(t *testing.T) {
	t.Parallel()
	for _, lowerIsHost := range []bool{false, true} {
		host, guest := hostAndGuest(t, lowerIsHost)
		admits(host)
		admits(guest)
		guest.SetPeers(voter(host))
		if e := await[Connected](t, guest); e.Pass != nil {
			t.Errorf("a peer that was named counts as a guest: %+v", e)
		}
		e := await[Connected](t, host)
		if e.Pass == nil || e.Pass.Gossip.Port() != 7946 || e.Peer != guest.self || e.Hello.Name != "guest" {
			t.Fatalf("the guest came as %+v", e)
		}
		host.SetPeers(nil) // gossip still shows nobody
		exchange(t, host, guest)

		host.SetPeers([]Peer{at(guest)})
		exchange(t, host, guest)
		host.SetPeers(nil) // it is no guest any more
		if l := await[Lost](t, host); !errors.Is(l.Err, errRemoved) {
			t.Errorf("it was lost for %v", l.Err)
		}
	}
}

func TestAGuestIsForgottenWithItsConnection(t *testing.T) {
	t.Parallel()
	host, guest := hostAndGuest(t, false)
	admits(host)
	admits(guest)
	guest.SetPeers(voter(host))
	await[Connected](t, host)
	kill(guest)
	await[Lost](t, host)
	eventually(t, "the end of its link", func() bool { return host.link(guest.self) == nil })
}

func TestWhoBringsNoProofOfItsOwnIsTurnedAwayWithoutAWord(t *testing.T) {
	t.Parallel()
	for what, pass := range map[string]func(own Pass, from, to election.PeerID) Pass{
		"none, as an older version":    func(Pass, election.PeerID, election.PeerID) Pass { return Pass{} },
		"one that was sent back to it": func(p Pass, from, to election.PeerID) Pass { p.Proof = []byte(to + " to " + from); return p },
		"one for another agent":        func(p Pass, from, _ election.PeerID) Pass { p.Proof = []byte(from + " to other"); return p },
		"one of another agent":         func(p Pass, _, to election.PeerID) Pass { p.Proof = []byte("other to " + to); return p },
	} {
		host, guest := hostAndGuest(t, false)
		admits(host)
		admits(guest)
		a := *guest.admission.Load()
		guest.Admit(Admission{Judge: a.Judge, Pass: func(to election.PeerID) Pass { return pass(a.Pass(to), guest.self, to) }})
		guest.SetPeers(voter(host))
		eventually(t, "a stranger", func() bool { return host.Stats().Refusals["unknown_peer"] > 1 })
		if guest.Met(host.self) || host.Met(guest.self) || guest.Stats().Refusals["by_peer"] > 0 {
			t.Errorf("with %s: connected, or refused in words: %+v", what, guest.Stats())
		}
		host.strangers.mu.Lock()
		known := host.strangers.known[guest.self] != nil
		host.strangers.mu.Unlock()
		if !known {
			t.Errorf("with %s: it is not remembered as a stranger", what)
		}
		host.SetPeers([]Peer{at(guest)}) // as without a key
		await[Connected](t, host)
	}
}

func TestWithANewKeyAllGuestsHaveToProveItAgain(t *testing.T) {
	t.Parallel()
	host, guest := hostAndGuest(t, false)
	admits(host)
	admits(guest)
	guest.SetPeers(voter(host))
	await[Connected](t, host)
	await[Connected](t, guest)
	host.Dismiss("another")
	exchange(t, host, guest)
	host.Dismiss()
	await[Lost](t, host)
	await[Connected](t, host)

	// A guest that is judged by the former key while the key changes is not let in.
	judge := host.admission.Load().Judge
	var judged atomic.Int32
	host.Admit(Admission{Pass: host.admission.Load().Pass, Judge: func(from election.PeerID, p Pass) (netip.AddrPort, error) {
		addr, err := judge(from, p)
		if judged.Add(1) == 1 {
			host.Dismiss()
		}
		return addr, err
	}})
	before := host.Stats().Refusals["unknown_peer"]
	host.Dismiss(guest.self)
	await[Lost](t, host)
	await[Connected](t, host)
	if n := host.Stats().Refusals["unknown_peer"]; n == before || judged.Load() < 2 {
		t.Errorf("judged %d times, turned away %d times: it was let in by a key that was gone", judged.Load(), n-before)
	}
}

// visiting returns a host, and a function by which an agent unknown to the host dials the host.
func visiting(t *testing.T, greet time.Duration) (host *Transport, dial func() transport.CapableConn) {
	t.Helper()
	ids := identities(t, 2)
	host = start(t, Config{Key: ids[1].key, Hello: helloOf("host", 1), tune: func(l *limits) { l.greet = greet }})
	admits(host)
	key, err := crypto.UnmarshalEd25519PrivateKey(ids[0].key)
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHost(hostConfig{key: key, gate: allow{}, door: &network.NullResourceManager{}, within: limitsFor(0)})
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.Decode(string(host.self))
	if err != nil {
		t.Fatal(err)
	}
	return host, func() transport.CapableConn {
		c, err := h.dial(t.Context(), id, host.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // the host may have closed it
		return c
	}
}

func TestVisitorsThatSayNothingTakeFewPlaces(t *testing.T) {
	t.Parallel()
	host, dial := visiting(t, patienceOfTests)
	var mute []transport.CapableConn
	for range maxPendingPerIP + 8 {
		mute = append(mute, dial())
	}
	most := 0
	eventually(t, "those that are too many", func() bool {
		n, _ := host.visitors.Taken()
		most = max(most, n)
		return uint64(n)+host.Stats().Refusals["unknown_peer"] >= uint64(len(mute))
	})
	if most != maxPendingPerIP {
		t.Errorf("%d visitors from one address at once", most)
	}
	for _, c := range mute {
		_ = c.Close() // the host may have closed it
	}
	eventually(t, "empty places", func() bool { n, _ := host.visitors.Taken(); return n == 0 })
}

func TestAVisitorThatSaysNothingIsSentAway(t *testing.T) {
	t.Parallel()
	host, dial := visiting(t, time.Second)
	eventually(t, "the end of a mute visitor", dial().IsClosed)
	eventually(t, "empty places", func() bool { n, _ := host.visitors.Taken(); return n == 0 })
}

func TestAHelloThatIsNoHelloIsNoVisit(t *testing.T) {
	t.Parallel()
	host, dial := visiting(t, patienceOfTests)
	good := helloOf("guest", 2).frame(0)
	good.Pass = Pass{Advert: []byte("127.0.0.1:1"), Proof: []byte(identities(t, 2)[0].id + " to " + host.self), Gossip: loopback}
	body, err := cbor.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, sent := range [][]byte{{0x01}, body[:len(body)-1], []byte(strings.Repeat("x", maxHello+1))} {
		w := stream(t, dial())
		if err := w.send(sent); err != nil {
			t.Fatal(err)
		}
		ended(t, w)
	}
	if host.link(identities(t, 2)[0].id) != nil {
		t.Error("it was let in")
	}
	w := stream(t, dial())
	if err := errors.Join(w.send(body), sendCBOR(w, verdictOf(nil))); err != nil {
		t.Fatal(err)
	}
	await[Connected](t, host)
}

func TestGuestsAreBounded(t *testing.T) {
	t.Parallel()
	host, _ := visiting(t, patienceOfTests)
	host.mu.Lock()
	for i := range maxLinks {
		host.links[election.PeerID(rune(i+1))] = &link{}
	}
	host.mu.Unlock()
	if err := host.welcome("", Peer{ID: "guest", Addr: loopback}, nil, 0); !errors.Is(err, errCrowded) {
		t.Errorf("one too many: %v", err)
	}
	host.mu.Lock()
	clear(host.links)
	host.mu.Unlock()
}

// The race detector sees whether the links are read while one is deleted.
func TestGuestsMayEndWhileTheTransportCloses(t *testing.T) {
	t.Parallel()
	host, guest := hostAndGuest(t, false)
	admits(host)
	admits(guest)
	guest.SetPeers(voter(host))
	await[Connected](t, host)
	var closing sync.WaitGroup
	closing.Go(func() { closeNow(t, host) })
	eventually(t, "its closing", host.isClosing)
	host.Dismiss()
	closing.Wait()
}

func TestAVisitorThatSaysNothingDelaysNoClose(t *testing.T) {
	t.Parallel()
	host, dial := visiting(t, 100*patienceOfTests)
	stream(t, dial())
	eventually(t, "a visitor", func() bool { n, _ := host.visitors.Taken(); return n == 1 })
	closed := make(chan struct{})
	go func() {
		closeNow(t, host)
		close(closed)
	}()
	eventually(t, "the end of a transport with a mute visitor", func() bool {
		select {
		case <-closed:
			return true
		default:
			return false
		}
	})
}

// An agent may learn who votes after it has learnt who is a member.
func TestAMemberThatTurnsOutToVoteIsVisited(t *testing.T) {
	t.Parallel()
	host, guest := hostAndGuest(t, true)
	admits(host)
	admits(guest)
	guest.SetPeers([]Peer{at(host)})
	guest.Suspect(host.self)
	eventually(t, "the link's loop", func() bool { return len(guest.link(host.self).suspected) == 0 })
	guest.SetPeers(voter(host))
	await[Connected](t, host)
	await[Connected](t, guest)
}
