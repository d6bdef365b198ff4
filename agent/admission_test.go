package agent_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// caller is an agent that dials others, and whose gossip joins nobody. So no gossip shows it.
type caller struct {
	gossip  *membership.Membership
	network *transport.Transport
}

// newCaller makes a caller with that cluster key, which fits the settings of the agent.
func newCaller(t *testing.T, c settings.Config, name string, fill byte) *caller {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte(name[:1]), ed25519.SeedSize))
	id, err := transport.PeerIDOf(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	loopback := netip.MustParseAddr("127.0.0.1")
	n, err := transport.New(transport.Config{Key: key, Listen: netip.AddrPortFrom(loopback, 0), Hello: transport.Hello{
		Lineage: 7, Name: name, Cluster: c.Cluster, Version: "0", Algorithm: c.Algorithm, Quorum: true, Heartbeat: c.Heartbeat, Lease: c.Lease}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSoon(t, n.Close) })
	g, err := membership.New(membership.Config{Cluster: c.Cluster, Key: bytes.Repeat([]byte{fill}, membership.KeySize), Signer: key, Bind: loopback,
		Self: membership.Member{Member: election.Member{Peer: id, Lineage: 7, Name: name, JoinedAt: 7}, Version: "0", PeerAddr: n.Addr(),
			Settings: membership.Settings{Algorithm: c.Algorithm, Quorum: true, Heartbeat: c.Heartbeat, Lease: c.Lease}},
		PeerIDOf: transport.PeerIDOf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSoon(t, func(context.Context) error { return g.Close() }) })
	n.Admit(transport.Admission{Pass: func(to election.PeerID) transport.Pass {
		advert, proof := g.Introduce(to)
		return transport.Pass{Advert: advert, Proof: proof, Gossip: g.Addr()}
	}})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go answer(ctx, n)
	return &caller{g, n}
}

// answer sends a report for each message, so that the caller is not silent.
func answer(ctx context.Context, n *transport.Transport) {
	for {
		select {
		case <-n.Ready():
		case <-ctx.Done():
			return
		}
		for e, ok := n.Next(); ok; e, ok = n.Next() {
			if m, is := e.(transport.Message); is {
				n.Send(m.Peer, election.Report{Lineage: 7, Stamp: 1})
			}
		}
	}
}

func closeSoon(t *testing.T, end func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := end(ctx); err != nil {
		t.Error(err)
	}
}

// connected waits until the caller is connected, or until it is not.
func (c *caller) connected(t *testing.T, to election.PeerID, want bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); c.network.Met(to) != want; {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("connected is %t for %s; %+v", !want, patience, c.network.Stats())
		}
	}
}

// voterWithKey starts an agent that is the only voter, and returns how to reach it.
func voterWithKey(t *testing.T) (settings.Config, *http.Client, transport.Peer) {
	t.Helper()
	c := lone(t)
	withKey(t, &c, 1)
	client, out, _ := start(t, c)
	waitFor(t, client, "/v1/elections/default", `"is_leader":true`)
	peerPort, _ := ports(t, out.String())
	_, body := get(t, client, "/v1/agent")
	_, id, _ := strings.Cut(body, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	return c, client, transport.Peer{ID: election.PeerID(id), First: true,
		Addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(peerPort))}
}

func TestAVoterAdmitsAnAgentThatGossipDoesNotShow(t *testing.T) {
	t.Parallel()
	c, client, voter := voterWithKey(t)
	guest := newCaller(t, c, "guest", 1)
	guest.network.SetPeers([]transport.Peer{voter})
	waitFor(t, client, "/v1/members", `"name":"guest"`)
	guest.connected(t, voter.ID, true)
	if _, body := get(t, client, "/v1/members"); !strings.Contains(body, guest.gossip.Addr().String()) {
		t.Errorf("the members do not show its gossip address: %s", body)
	}
	guest.network.SetPeers(nil)
	lacks(t, client, "/v1/members", `"guest"`)
}

func TestAnAgentWithAnotherKeyIsNotAdmitted(t *testing.T) {
	t.Parallel()
	c, client, voter := voterWithKey(t)
	stranger := newCaller(t, c, "stranger", 2)
	stranger.network.SetPeers([]transport.Peer{voter})
	lacks(t, client, "/metrics", `doyen_transport_refusals_total{why="unknown_peer"} 0`)
	if _, body := get(t, client, "/v1/members"); strings.Contains(body, "stranger") || stranger.network.Met(voter.ID) {
		t.Errorf("it was let in: %s", body)
	}
}

// After a change of the keys, an admitted agent has to prove that it has one of the present ones.
func TestAChangeOfTheKeysEndsWhatWasProvenWithTheFormerOnes(t *testing.T) {
	t.Parallel()
	c, client, voter := voterWithKey(t)
	guest := newCaller(t, c, "guest", 1)
	guest.network.SetPeers([]transport.Peer{voter})
	waitFor(t, client, "/v1/members", `"guest"`)
	next := settings.NewKey()
	change := func(what, value string) api.Keys {
		t.Helper()
		response, err := client.Post("http://d/v1/keys", "application/json", strings.NewReader(fmt.Sprintf(`{%q:%q,"force":%t}`, what, value, what == "use")))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var keys api.Keys
		if err := json.NewDecoder(response.Body).Decode(&keys); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d, %v", what, response.StatusCode, err)
		}
		return keys
	}
	keys := change("add", next).Keys
	waitFor(t, client, "/v1/members", `"guest"`) // it has proven it again, with the former key
	change("use", keys[1].Fingerprint)
	change("remove", keys[0].Fingerprint)
	lacks(t, client, "/v1/members", `"guest"`)
	guest.connected(t, voter.ID, false)
	key, err := base64.StdEncoding.DecodeString(next)
	if err != nil {
		t.Fatal(err)
	}
	if err := guest.gossip.SetKeys([][]byte{key}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client, "/v1/members", `"guest"`)
}

// lacks waits until the answer lacks the text.
func lacks(t *testing.T, client *http.Client, path, text string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		_, body := get(t, client, path)
		if !strings.Contains(body, text) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s still says %s: %s", path, text, body)
		}
	}
}
