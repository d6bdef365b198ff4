package membership

import (
	"cmp"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/memberlist"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
	"github.com/doyen-election/doyen/internal/base/each"
)

const (
	advertVersion = 1
	advertHeader  = 1 + ed25519.SignatureSize
	maxWord       = 32 // how many bytes a version or an algorithm may have
)

// advert is what an agent gossips about itself. On the wire it is CBOR, after a version byte
// and an ed25519 signature. Together they have at most 512 bytes. Agents up to 0.3.0 also gossip
// their candidacies, and send over streams only those that differ from the gossiped ones.
type advert struct {
	Key       []byte             `cbor:"1,keyasint"` // ed25519 public key
	Boot      election.LineageID `cbor:"2,keyasint"`
	Name      string             `cbor:"3,keyasint"`
	Version   string             `cbor:"4,keyasint,omitempty"`
	JoinedAt  int64              `cbor:"5,keyasint"`
	Peer      netip.AddrPort     `cbor:"6,keyasint"` // in binary, as a byte string
	Algorithm string             `cbor:"7,keyasint"`
	Quorum    bool               `cbor:"8,keyasint"`
	Heartbeat time.Duration      `cbor:"9,keyasint"`
	Lease     time.Duration      `cbor:"10,keyasint"`
	Draining  bool               `cbor:"12,keyasint,omitempty"`
	Page      *netip.AddrPort    `cbor:"13,keyasint,omitempty"` // in binary
	Follows   bool               `cbor:"14,keyasint,omitempty"`

	Candidacies []candidacy `cbor:"11,keyasint,omitempty"` // only agents up to 0.3.0 send it
}

type candidacy struct {
	_        struct{} `cbor:",toarray"`
	Election election.Name
	Priority int
}

// notary signs this agent's advertisements and verifies those of others.
type notary struct {
	cluster  string
	peerIDOf func(ed25519.PublicKey) (election.PeerID, error)
	format   codec.Format
}

func newNotary(cluster string, peerIDOf func(ed25519.PublicKey) (election.PeerID, error)) *notary {
	return &notary{cluster: cluster, peerIDOf: peerIDOf, format: codec.NewFormat(32, 64)}
}

// gossipName is unique to a lineage. So memberlist sees an agent with a new lineage as a new node. Under the
// old name, memberlist would refuse the agent's new address for a while. All lives of a lineage have one
// name and address: memberlist sees one node that missed a probe or two, and the node stays in every view.
// 0.2.0 compares this name with the hello, and takes all lives of a lineage for the same run.
func gossipName(m election.Member) string { return m.Name + "#" + m.Lineage.String() }

// seal encodes and signs an advertisement. If it is longer than memberlist's limit, seal returns an error.
func (n *notary) seal(m Member, key ed25519.PrivateKey) ([]byte, error) {
	if err := checkMember(m); err != nil {
		return nil, fmt.Errorf("advertise %q: %w", m.Name, err)
	}
	a := advert{
		Key: publicKey(key), Boot: m.Lineage, Name: m.Name, Version: m.Version, JoinedAt: m.JoinedAt, Peer: m.PeerAddr,
		Algorithm: m.Settings.Algorithm, Quorum: m.Settings.Quorum, Heartbeat: m.Settings.Heartbeat, Lease: m.Settings.Lease,
		Draining: m.Draining, Follows: m.Settings.Follows,
	}
	if m.PageAddr.IsValid() {
		a.Page = &m.PageAddr
	}
	body, err := n.format.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("advertise %q: %w", m.Name, err)
	}
	meta := make([]byte, 1, advertHeader+len(body))
	meta[0] = advertVersion
	meta = append(meta, ed25519.Sign(key, n.signed(gossipName(m.Member), body))...)
	meta = append(meta, body...)
	if len(meta) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("advertise %q: it needs %d bytes, at most %d are allowed", m.Name, len(meta), memberlist.MetaMaxSize)
	}
	return meta, nil
}

// open verifies and decodes an advertisement that was gossiped under the given name of a node.
func (n *notary) open(node string, meta []byte) (Member, error) {
	if len(meta) <= advertHeader || len(meta) > memberlist.MetaMaxSize {
		return Member{}, fmt.Errorf("advertisement of %d bytes", len(meta))
	}
	if meta[0] != advertVersion {
		return Member{}, fmt.Errorf("advertisement of unknown version %d: run the same release on all agents", meta[0])
	}
	signature, body := meta[1:advertHeader], meta[advertHeader:]
	var a advert
	if err := n.format.Unmarshal(body, &a); err != nil {
		return Member{}, fmt.Errorf("decode advertisement: %w", err)
	}
	if len(a.Key) != ed25519.PublicKeySize {
		return Member{}, fmt.Errorf("public key of %d bytes", len(a.Key))
	}
	if !ed25519.Verify(a.Key, n.signed(node, body), signature) {
		return Member{}, errors.New("its signature does not match its advertisement")
	}
	m, err := n.member(a)
	if err = cmp.Or(err, checkMember(m)); err != nil {
		return Member{}, err
	}
	if gossipName(m.Member) != node {
		return Member{}, fmt.Errorf("node %.80q advertises itself as %q", node, gossipName(m.Member))
	}
	return m, nil
}

func (n *notary) member(a advert) (Member, error) {
	var page netip.AddrPort
	if a.Page != nil {
		page = *a.Page
	}
	id, err := n.peerIDOf(a.Key)
	if err != nil {
		return Member{}, fmt.Errorf("derive peer ID: %w", err)
	}
	candidacies := each.Of(a.Candidacies, func(c candidacy) election.Candidacy {
		return election.Candidacy{Election: c.Election, Priority: c.Priority}
	})
	return Member{
		Member:  election.Member{Peer: id, Lineage: a.Boot, Name: a.Name, JoinedAt: a.JoinedAt, Draining: a.Draining, Candidacies: candidacies},
		Version: a.Version, PeerAddr: a.Peer, PageAddr: page,
		Settings: Settings{Algorithm: a.Algorithm, Quorum: a.Quorum, Heartbeat: a.Heartbeat, Lease: a.Lease, Follows: a.Follows},
	}, nil
}

// signed returns what is signed: the body with a context, the cluster and the node. So an
// advertisement is not valid for another purpose, cluster or node.
func (n *notary) signed(node string, body []byte) []byte {
	b := []byte("doyen membership 1\x00")
	b = binary.BigEndian.AppendUint16(b, uint16(len(n.cluster)))
	b = append(b, n.cluster...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(node)))
	b = append(b, node...)
	return append(b, body...)
}

// checkMember returns an error if what a member gossips about itself is not valid.
func checkMember(m Member) error {
	switch {
	case !election.ValidName(m.Name):
		return fmt.Errorf("name %.80q is not of the form [a-z0-9][a-z0-9._-]{0,62}", m.Name)
	case m.JoinedAt <= 0:
		return errors.New("it has no start time")
	case !m.PeerAddr.IsValid() || m.PeerAddr.Addr().IsUnspecified() || m.PeerAddr.Addr().Zone() != "" || m.PeerAddr.Port() == 0:
		return fmt.Errorf("other hosts can't reach the peer address %s", m.PeerAddr)
	case m.PageAddr.Addr().Zone() != "":
		return fmt.Errorf("other hosts can't reach the status page's address %s", m.PageAddr)
	case !plain(m.Version) || !plain(m.Settings.Algorithm):
		return fmt.Errorf("version %.40q or algorithm %.40q is longer than %d bytes or not printable", m.Version, m.Settings.Algorithm, maxWord)
	}
	for i, c := range m.Candidacies {
		switch {
		case !election.ValidName(string(c.Election)) && c.Election != election.RosterElection:
			return fmt.Errorf("election name %.80q is not of the form [a-z0-9][a-z0-9._-]{0,62}", c.Election)
		case c.Priority < 0 || c.Priority > election.MaxPriority:
			return fmt.Errorf("priority %d in election %q is not between 0 and %d", c.Priority, c.Election, election.MaxPriority)
		case i > 0 && m.Candidacies[i-1].Election >= c.Election:
			return errors.New("candidacies are not sorted, or one is given twice")
		}
	}
	return nil
}

func plain(s string) bool {
	return len(s) <= maxWord && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
