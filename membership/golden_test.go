package membership

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/golden"
)

// The next versions must read what this one gossips about itself.
func TestTheAdvertisementIsWhatItWas(t *testing.T) {
	n, cfg := testNotary(t), testConfig(1)
	least, full := cfg.Self, cfg.Self
	least.Candidacies = nil
	full.Draining = true
	full.Candidacies = []election.Candidacy{{Election: "default", Priority: 100}, {Election: "pay", Priority: 0}}
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
