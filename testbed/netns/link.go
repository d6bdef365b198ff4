package netns

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Link is what happens to packets on their way from one host to another. The
// zero value loses nothing and delays nothing.
type Link struct {
	Delay     time.Duration // at least this much, one way
	Jitter    time.Duration // up to this much more delay, evenly spread; keeps the order
	Loss      float64       // share of the packets lost, 0 to 1
	Duplicate float64       // share of the packets that arrive twice, 0 to 1
	// Reorder is the share of the packets, 0 to 1, that are held back for another 2 ms and
	// half a Delay, so that later packets overtake them.
	Reorder float64
	Rate    int64 // bytes per second of IP packets; 0 is no limit
	Cut     bool  // nothing arrives, silently
	// Port closes one port, of TCP and UDP: packets to or from it do not arrive. 0 closes
	// none.
	Port uint16
}

const maxDelay = time.Minute

func (l Link) Validate() error {
	for name, share := range map[string]float64{"loss": l.Loss, "duplicate": l.Duplicate, "reorder": l.Reorder} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("check link: %s %v: want a share between 0 and 1", name, share)
		}
	}
	switch {
	case l.Delay < 0 || l.Delay > maxDelay:
		return fmt.Errorf("check link: delay %s: want 0s to %s", l.Delay, maxDelay)
	case l.Jitter < 0 || l.Jitter > maxDelay:
		return fmt.Errorf("check link: jitter %s: want 0s to %s", l.Jitter, maxDelay)
	case l.Rate < 0:
		return fmt.Errorf("check link: rate %d: want bytes per second, 0 for no limit", l.Rate)
	}
	return nil
}

// closes reports whether an IPv4 packet is lost because it is to or from the closed port.
func (l Link) closes(packet []byte) bool {
	const tcp, udp = 6, 17
	header := int(packet[0]&0xf) * 4
	if l.Port == 0 || len(packet) < header+4 || packet[9] != tcp && packet[9] != udp {
		return false
	}
	return binary.BigEndian.Uint16(packet[header:]) == l.Port || binary.BigEndian.Uint16(packet[header+2:]) == l.Port
}

const MaxHosts = 200
