package attack

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// observer joins the cluster as an agent that is not a voter. It needs the cluster key for that.
// At intervals it sends all agents what no real agent sends:
//
//	lease   ask for votes under the longest lease that can be written, ten minutes
//	term    claim the highest term there is, in a heartbeat, a report and a release
//	roster  report a newer roster with the observer as the only voter
func observer(f *flag.FlagSet) runner {
	says, name, every := f.String("says", "term", ""), f.String("election", string(election.Default), ""), f.Duration("every", 200*time.Millisecond, "")
	return func(ctx context.Context, o Order) (string, error) {
		return o.observer(ctx, *says, election.Name(*name), *every)
	}
}

func (o Order) observer(ctx context.Context, says string, name election.Name, every time.Duration) (string, error) {
	if says != "lease" && says != "term" && says != "roster" {
		return "", fmt.Errorf("says=%s: want lease, term or roster", says)
	}
	l, err := joinAsObserver("mallory", o.Targets)
	if err != nil {
		return "", err
	}
	defer l.close()
	l.remain(ctx, every, func() { l.lie(says, name) })
	if l.sent == 0 {
		return "", errors.New("it was never connected to an agent that reported the voters to it")
	}
	return fmt.Sprintf("sent %d messages to %d agents: %d votes granted, %d refused", l.sent, len(l.stamps), l.granted, l.refused), nil
}

type liar struct {
	cluster string
	lease   time.Duration
	self    election.Holder
	gossip  *membership.Membership
	network *transport.Transport

	roster *election.Roster                     // the newest that was reported to the observer
	stamps map[election.PeerID]election.Instant // the newest of each connected agent
	term   election.Term                        // the term of the next request
	send   election.SendID

	sent, granted, refused int
	keys                   int // how many keys it was sent
}

// joinAsObserver begins to join the cluster of the targets.
func joinAsObserver(name string, all []Target) (*liar, error) {
	t := all[0]
	key, err := t.key()
	if err != nil {
		return nil, err
	}
	_, signer, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	id, err := transport.PeerIDOf(signer.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	here, err := addressTowards(t.Gossip)
	if err != nil {
		return nil, err
	}
	const version = "0.1.0"
	now := time.Now().UnixNano()
	l := &liar{cluster: t.Cluster, lease: t.Lease, self: election.Holder{Peer: id, Lineage: election.LineageID(now)},
		stamps: map[election.PeerID]election.Instant{}, term: 1}
	l.network, err = transport.New(transport.Config{Key: signer, Listen: netip.AddrPortFrom(here, 0),
		Hello: transport.Hello{Lineage: l.self.Lineage, Name: name, Cluster: t.Cluster, Version: version,
			Algorithm: t.Algorithm, Quorum: true, Heartbeat: t.Heartbeat, Lease: t.Lease}})
	if err != nil {
		return nil, err
	}
	l.gossip, err = membership.New(membership.Config{Cluster: t.Cluster, Key: key, Signer: signer, Bind: here,
		Self: membership.Member{Member: election.Member{Peer: id, Lineage: l.self.Lineage, Name: name, JoinedAt: now},
			Version: version, PeerAddr: l.network.Addr(),
			Settings: membership.Settings{Algorithm: t.Algorithm, Quorum: true, Heartbeat: t.Heartbeat, Lease: t.Lease}},
		Join: each.Of(all, func(t Target) string { return t.Gossip.String() }), PeerIDOf: transport.PeerIDOf})
	if err != nil {
		_ = l.network.Close(context.Background())
		return nil, err
	}
	return l, nil
}

// addressTowards is the address of this host that the target sees.
func addressTowards(target netip.AddrPort) (netip.Addr, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(target)) // sends nothing
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

func (l *liar) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.gossip.Leave(ctx)
	_ = l.gossip.Close()
	_ = l.network.Close(ctx)
}

// remain answers other agents, as an agent would, until ctx ends. At intervals of every it calls lie.
func (l *liar) remain(ctx context.Context, every time.Duration, lie func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case v := <-l.gossip.Views():
			l.viewed(v)
		case <-l.network.Ready():
			l.hear()
		case <-tick.C:
			lie()
		}
	}
}

// viewed connects to all agents, except those that the attack strangers has made.
func (l *liar) viewed(v membership.View) {
	var peers []transport.Peer
	for _, m := range v.Members {
		if !strings.HasPrefix(m.Name, stranger) {
			peers = append(peers, transport.Peer{ID: m.Peer, Addr: m.PeerAddr})
		}
	}
	l.network.SetPeers(peers)
}

func (l *liar) hear() {
	for e, ok := l.network.Next(); ok; e, ok = l.network.Next() {
		switch e := e.(type) {
		case transport.Connected:
			l.stamps[e.Peer] = 0
			l.introduce(e.Peer, 0)
		case transport.Lost:
			delete(l.stamps, e.Peer)
		case transport.Message:
			l.told(e.Peer, e.Message)
		}
	}
}

func (l *liar) told(by election.PeerID, m election.Message) {
	switch m := m.(type) {
	case election.Report:
		if m.Roster != nil && (l.roster == nil || l.roster.Version.Before(m.Roster.Version)) {
			l.roster = m.Roster
			for to := range l.stamps {
				l.introduce(to, 0)
			}
		}
		l.stamps[by] = max(l.stamps[by], m.Stamp)
	case election.Inquiry:
		l.introduce(by, m.ID)
	case election.HeartbeatAck:
		l.stamps[by] = max(l.stamps[by], m.Stamp)
	case election.Call:
		if strings.Contains(string(m.Body), `"add"`) {
			l.keys++
		}
		l.network.Send(by, election.CallAnswer{ID: m.ID, Status: 200, Body: []byte(`{"keys":[{"fingerprint":"00","in_use":true}]}`)})
	case election.VoteGrant:
		l.granted++
		l.stamps[by] = max(l.stamps[by], m.Stamp)
	case election.VoteRefusal:
		l.refused++
		l.term = max(l.term, m.Granted+1)
	}
}

// introduce sends the report that every agent sends first. Until an agent has this report of a
// peer, it ignores everything else from that peer.
func (l *liar) introduce(to election.PeerID, inquiry uint64) {
	l.network.Send(to, election.Report{ID: inquiry, Roster: l.roster, Lineage: l.self.Lineage, Stamp: 1})
}

func (l *liar) lie(says string, name election.Name) {
	if l.roster == nil {
		return
	}
	for to := range l.stamps {
		var lies []election.Message
		switch says {
		case "lease":
			lies = l.longLease(name)
		case "term":
			lies = l.lastTerm(to, name)
		case "roster":
			lies = l.otherVoters()
		}
		for _, m := range lies {
			if l.network.Send(to, m) {
				l.sent++
			}
		}
	}
}

func (l *liar) longLease(name election.Name) []election.Message {
	l.send++
	return []election.Message{election.VoteRequest{Election: name, Term: l.term, Holder: l.self, Lease: election.MaxLease, Send: l.send,
		Rank: election.Rank{Priority: election.MaxPriority, JoinedAt: 1, Peer: l.self.Peer}, Roster: *l.roster}}
}

func (l *liar) lastTerm(to election.PeerID, name election.Name) []election.Message {
	l.send++
	const last = election.MaxTerm
	return []election.Message{
		election.Heartbeat{Lineage: l.self.Lineage, Send: l.send, Version: l.roster.Version, Echo: l.stamps[to],
			Claims: []election.Claim{{Election: name, Term: last, Remaining: l.lease}}},
		election.Report{Voter: true, Roster: l.roster, Lineage: l.self.Lineage, Stamp: 1,
			Records: []election.Record{{Election: name, Term: last, Holder: l.self}}},
		election.Release{Election: name, Term: last, Holder: l.self},
	}
}

func (l *liar) otherVoters() []election.Message {
	newer := election.Roster{Cluster: l.roster.Cluster, Voters: []election.Voter{{Name: "mallory", Peer: l.self.Peer}},
		Version: election.Version{Driver: l.roster.Version.Driver + 100}}
	return []election.Message{election.Report{Voter: true, Roster: &newer, Lineage: l.self.Lineage, Stamp: 1}}
}
