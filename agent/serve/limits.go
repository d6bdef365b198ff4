package serve

import (
	"net"
	"strconv"
	"sync"

	"github.com/doyen-election/doyen/agent/campaign"
	"github.com/doyen-election/doyen/api"
)

// The bounds of a server, if the system allows it that many files.
const (
	maxConns     = 512  // on the TCP listener
	maxOfAddress = 32   // of one address on the TCP listener
	maxPlain     = 512  // on the socket, for plain calls
	maxReads     = 512  // on the read-only socket
	maxStreams   = 2048 // on the socket, for campaigns and watches: more than there can be
	maxWatches   = 1024
	// One user may have one in sharing of the socket's places.
	sharing = 4
	// One in reserving of the socket's places is for root and the agent's user alone.
	reserving = 10
	// allFiles is how many files all connections need, with those that hold the processes of
	// campaigns.
	allFiles = maxConns + maxPlain + maxReads + maxStreams + campaign.MaxCandidacies
)

// Bound returns how many of n connections there may be if only so many files may be open;
// files 0: as many as needed.
func Bound(n, files int) int {
	if files <= 0 || files >= allFiles {
		return n
	}
	return max(n*files/allFiles, 8)
}

// socketPlaces bounds the connections of a socket, by user.
func (s *Server) socketPlaces(l net.Listener, most int) *places {
	total := Bound(most, s.Files)
	return newPlaces(l, total, total/sharing, total/reserving, func(k *placed) origin {
		if !k.vouched {
			return origin{name: "unknown users"}
		}
		return origin{name: "user " + strconv.FormatUint(uint64(k.peer.UID), 10), favoured: s.own(k.peer.UID)}
	})
}

// tcpPlaces bounds the connections of the TCP listener by address.
func (s *Server) tcpPlaces(l net.Listener) *places {
	total := Bound(maxConns, s.Files)
	p := newPlaces(l, total, min(maxOfAddress, total/2), 0, func(k *placed) origin {
		return origin{name: "address " + network(k.RemoteAddr())}
	})
	p.brief = true
	return p
}

// network is the network in which one party can have many addresses: for IPv6, a /64.
func network(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return a.String()
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if addr.Is6() {
		if wide, err := addr.WithZone("").Prefix(64); err == nil {
			return wide.String()
		}
	}
	return addr.String()
}

// own reports whether the user is root or the agent's user.
func (s *Server) own(uid uint32) bool { return s.Access != nil && s.Access.Own(uid) }

// watches counts the open watches, by user.
type watches struct {
	total, share, reserve int

	mu   sync.Mutex
	of   map[uint32]int
	open int
}

func (s *Server) newWatches() *watches {
	total := Bound(maxWatches, s.Files)
	return &watches{total: total, share: total / sharing, reserve: total / reserving, of: map[uint32]int{}}
}

// begin counts one more watch of the user, or returns why the user may have no more.
func (w *watches) begin(uid uint32, favoured bool) *api.ErrorDetail {
	w.mu.Lock()
	defer w.mu.Unlock()
	busy := func(message string) *api.ErrorDetail { return &api.ErrorDetail{Code: api.CodeBusy, Message: message} }
	switch {
	case !favoured && w.of[uid] >= w.share:
		return busy("user " + userName(uid) + " has as many watches of this agent as one user may: end some of them")
	case w.open >= w.total || !favoured && w.open >= w.total-w.reserve:
		return busy("this agent has as many watches as it serves: end some of them")
	}
	w.of[uid]++
	w.open++
	return nil
}

func (w *watches) end(uid uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	if w.of[uid]--; w.of[uid] == 0 {
		delete(w.of, uid)
	}
}
