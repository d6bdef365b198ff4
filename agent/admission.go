package agent

import (
	"errors"
	"net/netip"

	"github.com/doyen-election/doyen/agent/loop"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// admit lets agents with the cluster key connect before gossip shows them. Without a key nobody could prove
// anything, and gossip alone decides.
func (a *agent) admit() {
	if len(a.membership.Keys()) == 0 {
		return
	}
	a.transport.Admit(transport.Admission{
		Pass: func(to election.PeerID) transport.Pass {
			advert, proof := a.membership.Introduce(to)
			return transport.Pass{Advert: advert, Proof: proof, Gossip: a.membership.Addr()}
		},
		Judge: a.judgeGuest,
	})
}

func (a *agent) judgeGuest(from election.PeerID, p transport.Pass) (netip.AddrPort, error) {
	m, err := a.membership.Introduced(from, p.Advert, p.Proof, p.Gossip)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return m.PeerAddr, errors.Join(a.judge(m), loop.Admissible(a.loop.Picture(), m))
}

// ring is the keys of gossip. A change of the keys ends all that was proven with the former keys.
type ring struct {
	*membership.Membership
	network *transport.Transport
}

func (r ring) SetKeys(keys [][]byte) error {
	if err := r.Membership.SetKeys(keys); err != nil {
		return err
	}
	r.network.Dismiss()
	return nil
}
