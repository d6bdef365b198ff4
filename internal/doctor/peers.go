package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/each"
)

// together runs the check for all elements at the same time.
func together[T any](all []T, check func(T) []Finding) []Finding {
	found := make([][]Finding, len(all))
	var checking sync.WaitGroup
	for i, one := range all {
		checking.Go(func() { found[i] = check(one) })
	}
	checking.Wait()
	return slices.Concat(found...)
}

// checkPeers checks each port of each other agent, in both directions: it dials the other agents, and the
// running agent asks them to dial back. An agent in --join that is not joined can only be dialled.
func (d *Doctor) checkPeers(ctx context.Context) []Finding {
	all := together(d.members, func(m api.Member) []Finding { return d.checkPeer(ctx, m) })
	all = append(all, together(d.config.Join, func(join string) []Finding { return d.checkSeed(ctx, join) })...)
	if len(all) == 0 && d.runs() {
		all = append(all, ok("peers", "this agent has heard of no other one"))
	}
	return all
}

// checkPeer checks the ports of one other agent.
func (d *Doctor) checkPeer(ctx context.Context, m api.Member) []Finding {
	switch {
	case m.ID == d.own.ID || m.Status == api.StatusLeft:
		return nil
	case m.Status == api.StatusDead:
		do := "start it, or open its ports, TCP and UDP"
		if d.own.Quorum.State != api.QuorumLost { // only a majority can remove a voter
			do += "; if it is not to come back: `doyen voters remove " + m.Name + "`"
		}
		return []Finding{{"peers", Warning, m.Name + " is dead", "gossip does not reach it", do}}
	}
	const open = "open this port in the firewalls between the two hosts"
	var all []Finding
	for _, p := range []struct{ port, addr string }{{api.DialGossipTCP, m.GossipAddr}, {api.DialPeerTCP, m.PeerAddr}} {
		if why := dial(ctx, p.addr); why != "" {
			all = append(all, Finding{"peers", Error, fmt.Sprintf("this host does not reach %s at %s %s", m.Name, p.port, p.addr), why, open})
		}
	}
	own, _ := d.report(d.own.ID)
	for _, p := range own.Dials {
		if p.Addr == m.GossipAddr && p.Error != "" {
			all = append(all, Finding{"peers", Warning, fmt.Sprintf("this host does not reach %s at %s %s", m.Name, p.Port, p.Addr), p.Error, open + ", in both directions"})
		}
	}
	if !m.Connected { // without a connection it can't be asked to dial back
		return append(all, Finding{"peers", Error, "this agent is not connected to " + m.Name,
			"one of the two hosts does not reach the other's peer port (only one of them dials), or one agent refuses the other",
			"open the peer ports of both hosts in both directions; run `doyen doctor` and `doyen status` on " + m.Name + " too"})
	}
	back := "and back"
	switch theirs, is := d.report(m.ID); {
	case !is || !theirs.Reached:
		all = append(all, Finding{"peers", Warning, m.Name + " could not be asked whether it reaches this host", "it did not answer over its connection", "run `doyen doctor` on " + m.Name})
	case len(theirs.Dials) == 0:
		back = "the way back can't be checked, since this agent does not vote, or that one's version " + theirs.Version + " does not do that"
	default:
		all = append(all, dialledBack(m, theirs.Dials, open)...)
	}
	if len(all) == 0 {
		all = append(all, ok("peers", "%s: gossip TCP and UDP, peer TCP: from here, %s", m.Name, back))
	}
	return all
}

// report returns an agent's report, which lists the ports that it has tried to reach.
func (d *Doctor) report(id string) (api.AgentReport, bool) {
	return each.First(d.agents, func(a api.AgentReport) bool { return a.ID == id })
}

// dialledBack reports the ports of this agent that another agent does not reach. Without UDP gossip is only
// slower, so that is a warning.
func dialledBack(m api.Member, dials []api.Dial, do string) []Finding {
	var all []Finding
	for _, p := range dials {
		result := Error
		if p.Port == api.DialGossipUDP {
			result = Warning
		}
		if p.Error != "" {
			all = append(all, Finding{"peers", result, fmt.Sprintf("%s does not reach this host at %s %s", m.Name, p.Port, p.Addr), p.Error, do})
		}
	}
	return all
}

// checkSeed dials an agent of --join, unless it is this agent or has been joined. If the name can't be
// resolved, checkNames has reported that.
func (d *Doctor) checkSeed(ctx context.Context, join string) []Finding {
	host, port := parts(join)
	addrs, err := d.lookUp(ctx, host)
	if err != nil || slices.ContainsFunc(addrs, func(a netip.Addr) bool { return d.knows(a.Unmap(), port) }) {
		return nil
	}
	if why := dial(ctx, net.JoinHostPort(host, port)); why != "" {
		return []Finding{{"peers", Warning, "--join " + join + " does not answer at TCP port " + port, why,
			"start an agent there, or open the port, TCP and UDP; nothing is to be done if that agent is yet to be started"}}
	}
	next := "runs"
	if d.runs() {
		next = "has joined"
	}
	return []Finding{ok("peers", "--join %s answers at TCP port %s; UDP and the way back can be checked once this agent %s", join, port, next)}
}

// knows reports whether the gossip address is this agent's, or that of an agent that it has joined.
func (d *Doctor) knows(addr netip.Addr, port string) bool {
	at := net.JoinHostPort(addr.String(), port)
	own := strconv.Itoa(d.config.GossipPort)
	return at == net.JoinHostPort(d.config.Bind, own) || at == net.JoinHostPort(d.config.Advertise, own) ||
		slices.ContainsFunc(d.members, func(m api.Member) bool { return m.GossipAddr == at })
}

// dial returns why no TCP connection can be made, or an empty text.
func dial(ctx context.Context, addr string) string {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	switch {
	case err == nil:
		_ = conn.Close()
		return ""
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: nothing listens there, or a firewall refuses it"
	case ctx.Err() != nil:
		return "no answer within " + dialTimeout.String() + ": a firewall may drop it, or the host is down"
	}
	return strings.TrimPrefix(err.Error(), "dial tcp ")
}
