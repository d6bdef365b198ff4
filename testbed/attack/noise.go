package attack

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
)

// noise sends datagrams from many addresses that are not the sender's. The option kind chooses
// garbage (random bytes), sealed (the cluster's label, then random bytes, as under a wrong
// key) or cluster (another cluster's label, then random bytes).
func noise(ctx context.Context, o Order) (string, error) {
	var n, rate int
	if err := o.numbers(map[string]*int{"sources": &n, "rate": &rate}); err != nil {
		return "", err
	}
	var from []net.PacketConn
	defer func() {
		for _, c := range from {
			_ = c.Close()
		}
	}()
	for i := range n {
		source := netip.AddrFrom4([4]byte{10, 78, byte(i / 250), byte(1 + i%250)})
		if o.Here {
			source = loopbackSource(i)
		}
		c, err := listenAs(ctx, source)
		if err != nil {
			return "", err
		}
		from = append(from, c)
	}
	sent, err := o.sendGossip(ctx, rate, func(t Target) ([]byte, error) { return t.noise(o.Options["kind"]) }, from...)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("sent %d datagrams from %d addresses", sent, len(from)), nil
}

func (t Target) noise(kind string) ([]byte, error) {
	junk := make([]byte, 120)
	_, _ = rand.Read(junk)
	switch kind {
	case "garbage":
		return junk, nil
	case "sealed":
		return append(append(t.label(), 1), junk...), nil
	case "cluster":
		return append(append([]byte{244, 7}, "another"...), junk...), nil
	}
	return nil, fmt.Errorf("kind=%s: want garbage, sealed or cluster", kind)
}
