package transport

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// visitor is a connection whose peer has just proven its identity.
type visitor struct{ at ma.Multiaddr }

func (v visitor) LocalMultiaddr() ma.Multiaddr  { return v.at }
func (v visitor) RemoteMultiaddr() ma.Multiaddr { return v.at }

// TestOnlyAKnownPeerThatDialsPassesTheDoor shows that a connection is ended
// where the identity is proven, before it can open a stream.
func TestOnlyAKnownPeerThatDialsPassesTheDoor(t *testing.T) {
	ids := identities(t, 3) // of two peers the one with the lower ID dials
	own := start(t, Config{Key: ids[1].key, Hello: helloOf("own", 1)})
	from, err := ma.NewMultiaddr("/ip4/127.0.0.1/tcp/4000")
	if err != nil {
		t.Fatal(err)
	}
	passes := func(id identity) bool {
		p, err := peer.Decode(string(id.id))
		if err != nil {
			t.Fatal(err)
		}
		return gater{own}.InterceptSecured(network.DirInbound, p, visitor{from})
	}
	for i, who := range []string{"a lower stranger", "itself", "a higher stranger"} {
		if passes(ids[i]) {
			t.Errorf("%s passes", who)
		}
	}
	own.SetPeers([]Peer{{ID: ids[0].id, Addr: loopback}, {ID: ids[2].id, Addr: loopback}})
	if !passes(ids[0]) {
		t.Error("a known peer is turned away")
	}
	if passes(ids[2]) {
		t.Error("a peer that is to be dialled passes")
	}
}

// TestAPeerThatWasKnownMayKnockAgainForAWhile shows that a peer which gossip lost for a moment is not
// reported as a stranger at once, though its first knock was long ago.
func TestAPeerThatWasKnownMayKnockAgainForAWhile(t *testing.T) {
	ids := identities(t, 2)
	own := start(t, Config{Key: ids[1].key, Hello: helloOf("own", 1)})
	knock := func() {
		own.strangers.knock(own.box, ids[0].id, loopback)
	}
	since := func(d time.Duration) {
		own.strangers.mu.Lock()
		defer own.strangers.mu.Unlock()
		own.strangers.known[ids[0].id].first = time.Now().Add(-d)
	}
	told := func() bool {
		own.strangers.mu.Lock()
		defer own.strangers.mu.Unlock()
		return own.strangers.known[ids[0].id].told
	}
	knock()
	since(strangerGrace)
	own.SetPeers([]Peer{{ID: ids[0].id, Addr: loopback}})
	own.SetPeers(nil)
	if knock(); told() {
		t.Error("a peer that was known a moment ago is told of")
	}
	since(strangerGrace)
	if knock(); !told() {
		t.Error("a peer that stays unknown is not told of")
	}
}
