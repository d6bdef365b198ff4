package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/api"
)

// settled is how long an agent must have run for a missing answer to a ping to mean something.
const settled = time.Minute

// checkPeers checks each port to each other agent, in both directions: it dials them, and the
// running agent has them dial back. Before the first start it can only dial those of --join.
func (d *Doctor) checkPeers(ctx context.Context) []Finding {
	if !d.runs() {
		return d.checkSeeds(ctx)
	}
	var others []api.Member
	for _, m := range d.members {
		if m.ID != d.own.ID {
			others = append(others, m)
		}
	}
	found := make([][]Finding, len(others))
	var checking sync.WaitGroup
	for i, m := range others {
		checking.Go(func() { found[i] = d.checkPeer(ctx, m) })
	}
	checking.Wait()
	if all := slices.Concat(found...); len(all) > 0 {
		return all
	}
	return []Finding{ok("peers", "there is no other agent")}
}

// checkPeer checks the ports of one other agent.
func (d *Doctor) checkPeer(ctx context.Context, m api.Member) []Finding {
	switch m.Status {
	case api.StatusLeft:
		return nil
	case api.StatusDead:
		return []Finding{{"peers", Warning, m.Name + " is dead", "gossip does not reach it", "start it, or open its ports, TCP and UDP; if it is not to come back: `doyen voters remove " + m.Name + "`"}}
	}
	const open = "open this port in the firewalls between the two hosts"
	var all []Finding
	for _, p := range []struct{ port, addr string }{{api.DialGossipTCP, m.GossipAddr}, {api.DialPeerTCP, m.PeerAddr}} {
		if why := dial(ctx, p.addr); why != "" {
			all = append(all, Finding{"peers", Error, fmt.Sprintf("this host does not reach %s at %s %s", m.Name, p.port, p.addr), why, open})
		}
	}
	if m.RTTMS == 0 && time.Duration(d.own.UptimeMS)*time.Millisecond > settled {
		all = append(all, Finding{"peers", Warning, fmt.Sprintf("this host does not reach %s at %s %s", m.Name, api.DialGossipUDP, m.GossipAddr), "no ping has been answered yet", open + ", in both directions"})
	}
	if !m.Connected { // then it can't be asked either
		return append(all, Finding{"peers", Error, "there is no connection to " + m.Name,
			"one of the two hosts does not reach the other's peer port (only one of them dials), or one agent refuses the other",
			"open the peer ports of both hosts in both directions; run `doyen doctor` and `doyen status` on " + m.Name + " too"})
	}
	back := "and back"
	switch i := slices.IndexFunc(d.agents, func(a api.AgentReport) bool { return a.ID == m.ID }); {
	case i < 0 || !d.agents[i].Reached:
		all = append(all, Finding{"peers", Warning, m.Name + " could not be asked whether it reaches this host", "it did not answer over its connection", "run `doyen doctor` on " + m.Name})
	case len(d.agents[i].Dials) == 0:
		back = "the way back can't be checked, since its version " + d.agents[i].Version + " does not do that"
	default:
		all = append(all, d.dialledBack(m, d.agents[i].Dials, open)...)
	}
	if len(all) == 0 {
		all = append(all, ok("peers", "%s: gossip TCP and UDP, peer TCP: from here, %s", m.Name, back))
	}
	return all
}

// dialledBack reports the ports of this agent that another one does not reach.
func (d *Doctor) dialledBack(m api.Member, dials []api.Dial, do string) []Finding {
	var all []Finding
	for _, p := range dials {
		result := Error
		if p.Port == api.DialGossipUDP {
			if time.Since(m.JoinedAt) < settled || time.Duration(d.own.UptimeMS)*time.Millisecond < settled {
				continue
			}
			result = Warning
		}
		if p.Error != "" {
			all = append(all, Finding{"peers", result, fmt.Sprintf("%s does not reach this host at %s %s", m.Name, p.Port, p.Addr), p.Error, do})
		}
	}
	return all
}

// checkSeeds dials the agents of --join, at the ports that this one would use itself.
func (d *Doctor) checkSeeds(ctx context.Context) []Finding {
	var all []Finding
	for _, j := range d.config.Join {
		host, gossip := hostOf(j), strconv.Itoa(agent.DefaultGossipPort)
		if _, port, err := net.SplitHostPort(j); err == nil {
			gossip = port
		}
		why := dial(ctx, net.JoinHostPort(host, gossip))
		if why != "" {
			all = append(all, Finding{"peers", Warning, "--join " + j + " does not answer at TCP port " + gossip, why,
				"start an agent there, or open the port, TCP and UDP; nothing is to be done if that agent is yet to be started"})
			continue
		}
		all = append(all, ok("peers", "--join %s answers at TCP port %s; UDP and the way back can be checked once this agent runs", j, gossip))
	}
	return all
}

// dial returns why no TCP connection can be made; empty: one can.
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
