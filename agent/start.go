package agent

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// resetGenesis drops a pending first roster if --reset-genesis was given. A committed first
// roster can't be dropped.
func (a *agent) resetGenesis(s election.State) (election.State, error) {
	if !a.cfg.ResetGenesis || s.Roster == nil && s.Pending == nil {
		return s, nil
	}
	if s.Roster != nil {
		return s, settings.Errorf("reset-genesis", "start without it", "the first roster is committed and can't be dropped")
	}
	s.Pending = nil
	if err := a.store.Write(election.Persist{State: &s}); err != nil {
		return s, fmt.Errorf("drop pending roster: %w", err)
	}
	a.logger.Info("the pending first roster was dropped")
	return s, nil
}

// pageAddr is where other hosts find the status page. There is none if --http is off, has a
// host name, or is on loopback while the agent itself is not.
func pageAddr(http string, peer netip.Addr) netip.AddrPort {
	host, port, err := net.SplitHostPort(http)
	if err != nil {
		return netip.AddrPort{}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = peer.String()
	}
	at, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil || at.Port() == 0 || at.Addr().Zone() != "" || at.Addr().IsLoopback() && !peer.IsLoopback() {
		return netip.AddrPort{}
	}
	return at
}

// maxSeeds is how many addresses membership accepts.
const maxSeeds = 64

// seeds are the addresses at which this agent joins gossip: the configured ones, and those that the voters had in
// the former life. Other agents may not have noticed the end of the former life. They do not search for this
// agent, so it has to join by itself.
func (a *agent) seeds(join []string) []string {
	all := slices.Clone(join)
	for _, v := range knownVoters(a.past) {
		if at := v.Gossip.String(); v.Peer != a.store.Peer() && v.Gossip.IsValid() && len(all) < maxSeeds && !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// adopt stores a new roster, and gossips whether that roster names settings.
func (a *agent) adopt(r *election.Roster) {
	a.roster.Store(r)
	if err := a.membership.Update(func(m *membership.Member) { m.Settings.Follows = a.cfg.Quorum && r.Follows() }); err != nil {
		a.logger.Error("can't tell the others that the roster names the settings", "err", err)
	}
}

// accept judges the hello of a peer, before any message is exchanged. The error is why the peer is refused.
func (a *agent) accept(_ election.PeerID, h transport.Hello) error {
	if h.Cluster != a.cfg.Cluster {
		return fmt.Errorf("agent %s belongs to cluster %q, this one to %q", h.Name, h.Cluster, a.cfg.Cluster)
	}
	if needed := a.roster.Load().Level(); h.Level < needed {
		return fmt.Errorf("agent %s runs version %s (feature level %d), which does not know the settings or rights that this cluster uses (level %d): upgrade it", h.Name, h.Version, h.Level, needed)
	}
	return a.agree(h.Name, membership.Settings{Algorithm: h.Algorithm, Quorum: h.Quorum, Lease: h.Lease, Follows: h.Follows})
}

// judge accepts or refuses a member by the settings that it gossips.
func (a *agent) judge(m membership.Member) error { return a.agree(m.Name, m.Settings) }

// agree compares the settings that all agents must share. Heartbeats may differ: failure detectors
// learn each leader's rate. Where a roster names algorithm and lease, all agents use those.
func (a *agent) agree(name string, theirs membership.Settings) error {
	roster := theirs.Follows || a.roster.Load().Follows()
	switch {
	case theirs.Quorum != a.cfg.Quorum:
		return fmt.Errorf("agent %s runs with --quorum=%t, agent %s with %t: set the same on all", name, theirs.Quorum, a.cfg.Name, a.cfg.Quorum)
	case theirs.Algorithm != a.cfg.Algorithm && !roster:
		return fmt.Errorf("agent %s runs with --algorithm %s, agent %s with %s: set the same on all", name, theirs.Algorithm, a.cfg.Name, a.cfg.Algorithm)
	case theirs.Lease != a.cfg.Lease && !roster:
		return fmt.Errorf("agent %s runs with --lease %s, agent %s with %s: set the same on all", name, theirs.Lease, a.cfg.Name, a.cfg.Lease)
	}
	return nil
}
