package membership

import (
	"bytes"
	"net/netip"
	"testing"
)

func TestAnIntroductionCountsForItsSenderItsReceiverAndAKeyInUse(t *testing.T) {
	key := func(fill byte) []byte { return bytes.Repeat([]byte{fill}, KeySize) }
	with := func(n uint64, change func(*Config)) *Membership {
		cfg := testConfig(n)
		cfg.Key = key(1)
		change(&cfg)
		return start(t, cfg).Membership
	}
	keyed := func(first byte, others ...[]byte) func(*Config) {
		return func(c *Config) { c.Key, c.OtherKeys = key(first), others }
	}
	host, guest, other := with(1, keyed(1)), with(2, keyed(1)), with(3, keyed(1))
	from, to := guest.cfg.Self.Peer, host.cfg.Self.Peer
	gossip := netip.MustParseAddrPort("10.0.0.2:7946")

	advert, proof := guest.Introduce(to)
	m, err := host.Introduced(from, advert, proof, gossip)
	if err != nil || m.Peer != from || m.Name != "agent-2" || m.JoinedAt != guest.cfg.Self.JoinedAt || m.GossipAddr != gossip || m.Status != Alive || m.PeerAddr.Port() != 7947 {
		t.Fatalf("the host sees %+v, %v", m, err)
	}

	_, forOther := guest.Introduce(other.cfg.Self.Peer)
	_, back := host.Introduce(from)
	othersAdvert, others := other.Introduce(to)
	_, elsewhere := with(2, func(c *Config) { c.Cluster = "another" }).Introduce(to)
	_, former := with(2, keyed(2)).Introduce(to)
	damaged := bytes.Clone(advert)
	damaged[len(damaged)-1] ^= 1
	const noProof = "not proven"
	for what, c := range map[string]struct {
		advert, proof []byte
		gossip        netip.AddrPort
		want          string
	}{
		"no proof":                      {advert, nil, gossip, noProof},
		"the host's own proof":          {advert, back, gossip, noProof},
		"a proof for another host":      {advert, forOther, gossip, noProof},
		"another guest's proof":         {advert, others, gossip, noProof},
		"a proof for another cluster":   {advert, elsewhere, gossip, noProof},
		"a proof by another key":        {advert, former, gossip, noProof},
		"half a proof":                  {advert, proof[:len(proof)/2], gossip, noProof},
		"another guest's advertisement": {othersAdvert, proof, gossip, "advertisement of another agent"},
		"a damaged advertisement":       {damaged, proof, gossip, "signature"},
		"no advertisement":              {nil, proof, gossip, "advertisement of 0 bytes"},
		"no gossip address":             {advert, proof, netip.AddrPort{}, "can't reach"},
		"an address of any host":        {advert, proof, netip.MustParseAddrPort("0.0.0.0:1"), "can't reach"},
	} {
		_, err := host.Introduced(from, c.advert, c.proof, c.gossip)
		if err == nil {
			t.Errorf("%s is accepted", what)
			continue
		}
		wantText(t, err, c.want)
	}

	// The key is changed: add, use, remove.
	accepted := func(want bool) {
		t.Helper()
		_, proof := guest.Introduce(to)
		if _, err := host.Introduced(from, advert, proof, gossip); (err == nil) != want {
			t.Errorf("accepted %t, want %t: %v", !want, want, err)
		}
	}
	change := func(m *Membership, fills ...byte) {
		t.Helper()
		var keys [][]byte
		for _, f := range fills {
			keys = append(keys, key(f))
		}
		if err := m.SetKeys(keys); err != nil {
			t.Fatal(err)
		}
	}
	change(host, 1, 3)
	accepted(true)
	change(guest, 3, 1)
	accepted(true)
	change(host, 3)
	accepted(true)
	if _, err := host.Introduced(from, advert, proof, gossip); err == nil {
		t.Error("a proof by a removed key is accepted")
	}
	change(guest, 1)
	accepted(false)

	// Without a key nobody proves anything.
	open := with(4, func(c *Config) { c.Key = nil })
	if advert, proof := open.Introduce(to); advert != nil || proof != nil {
		t.Error("an agent without a key makes a proof")
	}
	if _, err := open.Introduced(from, advert, nil, gossip); err == nil {
		t.Error("an agent without a key accepts no proof as one")
	}
}
