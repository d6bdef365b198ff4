package serve

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// dialBack is the query of GET /v1/agents that has each other agent try the ports of this one.
const (
	dialBack    = "dial=back"
	dialTimeout = time.Second // for all of them
)

// dials tries the ports of another agent, at the addresses that gossip has. So an agent that asks
// for it learns whether its firewall lets others in, and can have nobody else dialled.
func (o others) dials(ctx context.Context, to election.PeerID) []api.Dial {
	p := o.Picture()
	i := slices.IndexFunc(p.View.Members, func(m membership.Member) bool { return m.Peer == to })
	if i < 0 {
		return nil
	}
	m := p.View.Members[i]
	all := []api.Dial{{Port: api.DialGossipTCP}, {Port: api.DialPeerTCP}, {}}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var dialling sync.WaitGroup
	dialling.Go(func() { all[2] = o.ping(m) })
	for i, addr := range []netip.AddrPort{m.GossipAddr, m.PeerAddr} {
		dialling.Go(func() {
			all[i].Addr = addr.String()
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr.String())
			switch {
			case err == nil:
				_ = conn.Close()
			case errors.Is(err, unix.ECONNREFUSED):
				all[i].Error = "connection refused"
			case ctx.Err() != nil:
				all[i].Error = "no answer within " + dialTimeout.String()
			default:
				all[i].Error = socket.Cause(err)
			}
		})
	}
	dialling.Wait()
	return all
}

// pingAll tries the way to each other agent over UDP: the caller can dial TCP itself.
func (o others) pingAll() []api.Dial {
	others := slices.DeleteFunc(slices.Clone(o.Picture().View.Members), func(m membership.Member) bool {
		return m.Peer == o.Self.Peer || m.Status != membership.Alive
	})
	all := make([]api.Dial, len(others))
	var pinging sync.WaitGroup
	for i, m := range others {
		pinging.Go(func() { all[i] = o.ping(m) })
	}
	pinging.Wait()
	return all
}

func (o others) ping(to membership.Member) api.Dial {
	d := api.Dial{Port: api.DialGossipUDP, Addr: to.GossipAddr.String()}
	if err := o.Pings(to); err != nil {
		d.Error = socket.Cause(err)
	}
	return d
}
