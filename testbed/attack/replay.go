package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/doyen-election/doyen/testbed/observe"
)

const maxCaptured = 50_000

// replay first captures, for a while, every gossip packet that comes to or leaves the host it
// is on. Then it waits, and sends all these packets to each target, again and again. It needs
// no key, because it does not read the packets.
func replay(ctx context.Context, o Order) (string, error) {
	var capture, wait, every time.Duration
	if err := o.spans(map[string]*time.Duration{"capture": &capture, "wait": &wait, "every": &every}); err != nil {
		return "", err
	}
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

// datagram returns the payload of an IPv4 packet, if that is a whole UDP packet to or from the
// port.
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
