// Package obituary is the datagram by which a keeper reports to the voters that its agent acts
// no more and has no next life (DESIGN.md, K5 and K6). They release the agent's grants at
// once, and the next host leads without waiting for the lease.
//
// It guarantees that a Notice proves itself: only a sender that has the lineage's secret can write
// it, and the lineage's lives sent the secret's SHA-256 to each peer over an authenticated stream.
// Anybody may repeat a Notice, and it stays true. The package does not guarantee that a datagram
// arrives, nor hide the secret: a Notice is sent only after the lineage has ended.
//
// A keeper is small, so this package imports next to nothing.
package obituary

import (
	"encoding/binary"
	"errors"

	"github.com/doyen-election/doyen/election"
)

// Magic begins each datagram. Gossip shares the port, and none of its packets begins with this.
const Magic = "doyen obituary 1\n"

const (
	// SecretSize is the length of a lineage's secret.
	SecretSize = 32
	// MaxSize bounds a datagram.
	MaxSize = len(Magic) + 8 + SecretSize + maxPeer

	maxPeer = 128
)

// Notice reports that no life of the lineage acts or will act.
type Notice struct {
	Holder election.Holder
	Secret [SecretSize]byte
}

// ErrInvalid reports what is not a datagram of Encode.
var ErrInvalid = errors.New("not a valid obituary")

// Encode returns the datagram: the magic, the lineage in 8 bytes (big-endian), the secret,
// and the peer ID to the end.
func Encode(n Notice) ([]byte, error) {
	if len(n.Holder.Peer) == 0 || len(n.Holder.Peer) > maxPeer || n.Holder.Lineage == 0 {
		return nil, ErrInvalid
	}
	b := append(make([]byte, 0, MaxSize), Magic...)
	b = binary.BigEndian.AppendUint64(b, uint64(n.Holder.Lineage))
	b = append(b, n.Secret[:]...)
	return append(b, n.Holder.Peer...), nil
}

// Is reports whether a datagram is meant as an obituary.
func Is(b []byte) bool { return len(b) >= len(Magic) && string(b[:len(Magic)]) == Magic }

// Decode reads a datagram. The caller checks whether the secret is the lineage's.
func Decode(b []byte) (n Notice, err error) {
	if !Is(b) || len(b) > MaxSize {
		return n, ErrInvalid
	}
	if b = b[len(Magic):]; len(b) <= 8+SecretSize {
		return n, ErrInvalid
	}
	n.Holder.Lineage = election.LineageID(binary.BigEndian.Uint64(b))
	copy(n.Secret[:], b[8:])
	n.Holder.Peer = election.PeerID(b[8+SecretSize:])
	if n.Holder.Lineage == 0 {
		return n, ErrInvalid
	}
	return n, nil
}
