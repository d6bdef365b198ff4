package attack

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/doyen-election/doyen/testbed/observe"
)

const maxCaptured = 50_000

// replay first captures, for a while, every gossip packet that comes to or leaves the host it
// is on. Then it waits, and sends all these packets to each target, again and again. It needs
// no key, because it does not read the packets.
func replay(f *flag.FlagSet) runner {
	capture, wait, every := f.Duration("capture", 3*time.Second, ""), f.Duration("wait", 0, ""), f.Duration("every", time.Second, "")
	return func(ctx context.Context, o Order) (string, error) { return o.replay(ctx, *capture, *wait, *every) }
}

func (o Order) replay(ctx context.Context, capture, wait, every time.Duration) (string, error) {
	listening, stop := context.WithTimeout(ctx, capture)
	packets, err := captureGossip(listening, o.Targets[0].Gossip.Port())
	stop()
	if err != nil {
		return "", err
	}
	if len(packets) == 0 {
		return "", errors.New("no gossip came by")
	}
	c, err := net.ListenPacket("udp", ":0")
	if err != nil {
		return "", err
	}
	defer c.Close()
	sent := 0
	for observe.Sleep(ctx, wait); ctx.Err() == nil; observe.Sleep(ctx, every) {
		for _, packet := range packets {
			for _, t := range o.Targets {
				_, _ = c.WriteTo(packet, net.UDPAddrFromAddrPort(t.Gossip))
				sent++
			}
			_ = observe.Sleep(ctx, 100*time.Microsecond)
		}
	}
	return fmt.Sprintf("captured %d packets, sent %d", len(packets), sent), nil
}

// datagram returns the payload of an IPv4 packet, if the packet is a whole UDP packet to or from
// the port.
func datagram(packet []byte, port uint16) ([]byte, bool) {
	if len(packet) < 20 || packet[0]>>4 != 4 || packet[9] != 17 {
		return nil, false
	}
	head := int(packet[0]&15) * 4
	if len(packet) < head+8 {
		return nil, false
	}
	udp := packet[head:]
	from, to, length := uint16(udp[0])<<8|uint16(udp[1]), uint16(udp[2])<<8|uint16(udp[3]), int(udp[4])<<8|int(udp[5])
	if from != port && to != port || length < 8 || length > len(udp) {
		return nil, false
	}
	return udp[8:length], true
}

// noise sends datagrams from many addresses that are not the sender's. The option kind chooses
// garbage (random bytes), sealed (the cluster's label, then random bytes, as under a wrong
// key) or cluster (another cluster's label, then random bytes).
func noise(f *flag.FlagSet) runner {
	n, rate, kind := f.Int("sources", 400, ""), f.Float64("rate", 1000, ""), f.String("kind", "garbage", "")
	return func(ctx context.Context, o Order) (string, error) { return o.noise(ctx, *n, *rate, *kind) }
}

func (o Order) noise(ctx context.Context, n int, rate float64, kind string) (string, error) {
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
	sent, err := o.sendGossip(ctx, rate, func(t Target) ([]byte, error) { return t.noise(kind) }, from...)
	return fmt.Sprintf("sent %d datagrams from %d addresses", sent, len(from)), err
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

// version0 sends packets of encryption version 0. The last byte of such a packet says how much
// of the packet is padding: here, more than there is.
func version0(f *flag.FlagSet) runner {
	padding, rate := f.Int("padding", 239, ""), f.Float64("rate", 10, "")
	return func(ctx context.Context, o Order) (string, error) { return o.version0(ctx, *padding, *rate) }
}

func (o Order) version0(ctx context.Context, padding int, rate float64) (string, error) {
	c, err := net.ListenPacket("udp", ":0")
	if err != nil {
		return "", err
	}
	defer c.Close()
	sent, err := o.sendGossip(ctx, rate, func(t Target) ([]byte, error) {
		key, err := t.key()
		if err != nil {
			return nil, err
		}
		plain := append([]byte{0, 0x82, 0xaa}, "SourceNode\xa0\xa5SeqNo"...) // a ping
		return t.seal(key, 0, append(plain, 0xcc, byte(padding)))
	}, c)
	return fmt.Sprintf("sent %d packets", sent), err
}

// seal encrypts a packet for the cluster and lays it out as memberlist does: label, version,
// nonce, ciphertext. The cluster's name is the additional data.
func (t Target) seal(key []byte, version byte, plain []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, gcm.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	packet := append(append(t.label(), version), nonce...)
	return gcm.Seal(packet, nonce, plain, []byte(t.Cluster)), nil
}
