package membership

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/golden"
)

// The next versions must read what this one gossips about itself.
func TestTheAdvertisementIsWhatItWas(t *testing.T) {
	n, cfg := testNotary(t), testConfig(1)
	least, full := cfg.Self, cfg.Self
	full.Draining = true
	full.PeerAddr = netip.MustParseAddrPort("[2001:db8::7]:7947")
	full.PageAddr = netip.MustParseAddrPort("10.0.0.7:7980")
	var lines strings.Builder
	for _, m := range []Member{least, full} {
		meta, err := n.seal(m, cfg.Signer)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, "%s %x\n", gossipName(m.Member), meta)
		if got, err := n.open(gossipName(m.Member), meta); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("read as %+v, %v", got, err)
		}
	}
	golden.Check(t, "advertisement.golden", lines.String())
}

// Agents up to 0.3.0 gossip in which elections they are candidates, and most send it in no other way.
func TestTheCandidaciesOf030AreRead(t *testing.T) {
	text, err := os.ReadFile("testdata/advertisement-0.3.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	node, meta, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	b, err := hex.DecodeString(meta)
	if err != nil {
		t.Fatal(err)
	}
	m, err := testNotary(t).open(node, b)
	if err != nil || m.Name != "agent-1" || !m.Draining || m.Settings != testSettings {
		t.Errorf("read as %+v, %v", m, err)
	}
	if want := []election.Candidacy{{Election: "default", Priority: 100}, {Election: "pay"}}; !slices.Equal(m.Candidacies, want) {
		t.Errorf("candidacies %+v, want %+v", m.Candidacies, want)
	}
}

// Anyone who has the cluster key can sign anything: a priority above the maximum would win every election,
// and no message could carry it.
func TestCandidaciesThatNoAgentCanHaveAreRefused(t *testing.T) {
	n, cfg := testNotary(t), testConfig(1)
	for _, c := range [][]candidacy{
		{{Election: "default", Priority: -1}}, {{Election: "default", Priority: election.MaxPriority + 1}},
		{{Election: "UPPER"}}, {{Election: "pay"}, {Election: "default"}}, {{Election: "pay"}, {Election: "pay"}},
	} {
		m, key := cfg.Self, cfg.Signer
		body, err := n.format.Marshal(advert{Key: publicKey(key), Boot: m.Lineage, Name: m.Name, JoinedAt: m.JoinedAt, Peer: m.PeerAddr, Candidacies: c})
		if err != nil {
			t.Fatal(err)
		}
		meta := append([]byte{advertVersion}, ed25519.Sign(key, n.signed(gossipName(m.Member), body))...)
		if m, err := n.open(gossipName(m.Member), append(meta, body...)); err == nil {
			t.Errorf("believed: %+v", m.Candidacies)
		}
	}
}
