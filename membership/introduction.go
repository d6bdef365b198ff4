package membership

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/doyen-election/doyen/election"
)

// Introduce returns what shows another agent that this one belongs to the cluster, before gossip does: what
// this agent gossips about itself, and a proof that it has the cluster key. Without a key both are nil.
func (m *Membership) Introduce(to election.PeerID) (advert, proof []byte) {
	keys := m.Keys()
	if len(keys) == 0 {
		return nil, nil
	}
	return *m.del.meta.Load(), m.proof(keys[0], m.cfg.Self.Peer, to)
}

// Introduced returns the agent that introduces itself by an advertisement, a proof and a gossip address. That
// agent has proven the peer ID `from`.
func (m *Membership) Introduced(from election.PeerID, advert, proof []byte, gossip netip.AddrPort) (Member, error) {
	if !m.proven(from, proof) {
		return Member{}, errors.New("it has not proven that it has a cluster key in use")
	}
	who, err := m.notary.introduced(bytes.Clone(advert))
	switch {
	case err != nil:
		return Member{}, err
	case who.Peer != from:
		return Member{}, errors.New("it brings the advertisement of another agent")
	case !gossip.IsValid() || gossip.Addr().IsUnspecified() || gossip.Addr().Zone() != "" || gossip.Port() == 0:
		return Member{}, errors.New("other hosts can't reach its gossip address")
	}
	who.GossipAddr, who.Status = gossip, Alive
	return who, nil
}

// proven reports whether the proof was made by that agent, for this one, with one of the keys in use.
func (m *Membership) proven(from election.PeerID, proof []byte) bool {
	for _, key := range m.Keys() {
		if hmac.Equal(proof, m.proof(key, from, m.cfg.Self.Peer)) {
			return true
		}
	}
	return false
}

// proof shows the agent `to` that the agent `from` has the key. It needs no time and no random number: each
// of the two proves to the other who it is, so nobody else can use it, and it can't be sent back.
func (m *Membership) proof(key []byte, from, to election.PeerID) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{"doyen admission 1", m.cfg.Cluster, string(from), string(to)} {
		mac.Write(binary.BigEndian.AppendUint16(nil, uint16(len(part))))
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

func (n *notary) introduced(meta []byte) (Member, error) {
	var a advert
	if len(meta) > advertHeader {
		_ = n.format.Unmarshal(meta[advertHeader:], &a) // open returns the error
	}
	return n.open(gossipName(election.Member{Name: a.Name, Lineage: a.Boot}), meta)
}
