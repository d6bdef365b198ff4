package record

import (
	"encoding/binary"
	"net/netip"

	"github.com/doyen-election/doyen/election"
)

// MaxVoters is how many voters' addresses are recorded.
const MaxVoters = 32

// Voter is where one voter can be reached.
type Voter struct {
	Peer   election.PeerID
	Gossip netip.AddrPort
	Stream netip.AddrPort
}

func putVoters(to *[votersRoom]uint64, all []Voter) []uint64 {
	all = all[:min(len(all), MaxVoters)]
	for i, v := range all {
		at := to[1+i*voterWords:]
		putText(at[:textWords], string(v.Peer))
		putAddress(at[textWords:], v.Gossip)
		putAddress(at[textWords+3:], v.Stream)
	}
	to[0] = uint64(len(all))
	return to[:1+len(all)*voterWords]
}

func getVoters(from []uint64) (all []Voter, ok bool) {
	if len(from) == 0 || from[0] > MaxVoters || uint64(len(from)) != 1+from[0]*voterWords {
		return nil, false
	}
	for at := from[1:]; len(at) > 0; at = at[voterWords:] {
		peer, ok := text(at[:textWords])
		if !ok {
			return nil, false
		}
		all = append(all, Voter{election.PeerID(peer), address(at[textWords:]), address(at[textWords+3:])})
	}
	return all, true
}

// putAddress drops a zone, which means something only among one host's interfaces.
func putAddress(to []uint64, a netip.AddrPort) {
	if !a.Addr().IsValid() {
		return
	}
	b := a.Addr().As16()
	to[0], to[1], to[2] = binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:]), uint64(a.Port())
}

func address(from []uint64) netip.AddrPort {
	if from[0] == 0 && from[1] == 0 && from[2] == 0 {
		return netip.AddrPort{}
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], from[0])
	binary.LittleEndian.PutUint64(b[8:], from[1])
	return netip.AddrPortFrom(netip.AddrFrom16(b).Unmap(), uint16(from[2]))
}
