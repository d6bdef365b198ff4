package membership

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

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

// Agents up to 0.3.0 also gossip in which elections they are candidates.
func TestAnAdvertisementOf030IsRead(t *testing.T) {
	text, err := os.ReadFile("testdata/advertisement-0.3.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	node, meta, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	b, err := hex.DecodeString(meta)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := testNotary(t).open(node, b); err != nil || m.Name != "agent-1" || !m.Draining || m.Settings != testSettings {
		t.Errorf("read as %+v, %v", m, err)
	}
}
