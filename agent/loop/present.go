package loop

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// If gossip calls a member dead for gossipBlockedAfter, although the member answers over its stream, there is a warning.
const gossipBlockedAfter = 5 * time.Second

// If gossip does not show a guest for gossipLateAfter, there is a warning. A start of many agents takes seconds.
const gossipLateAfter = 30 * time.Second

const crowd = 16 // from so many members on, voters without a roster answer each other alone

// present is a member that this agent treats as present.
type present struct {
	membership.Member
	dead  bool             // gossip calls the member dead, but its stream works
	guest bool             // gossip does not show it yet
	since election.Instant // since when it is dead or a guest
}

// presence knows which agents are present, by gossip and by streams. It belongs to the loop.
//
// Gossip has a separate port, which a firewall rule or a flood can block while every stream works. So if gossip
// calls a member dead, this agent asks the member for an answer over its stream. The member stays present until a lease
// has passed since gossip called it dead and since its last message. A member that reported that it leaves is not kept.
type presence struct {
	lease   time.Duration
	dead    map[election.PeerID]election.Instant // when this agent noticed that gossip calls the peer dead
	members []present                            // the members that transport and elector were given last
	dueAt   election.Instant                     // when to ask and check again; Never: no member that gossip calls dead is kept
}

func newPresence(lease time.Duration) presence {
	return presence{lease: lease, dead: map[election.PeerID]election.Instant{}, dueAt: election.Never}
}

// update determines who is present, and reports whether that has changed.
func (p *presence) update(now election.Instant, v *membership.View, guests map[election.PeerID]guest, heard map[election.PeerID]election.Instant) bool {
	p.dueAt = election.Never
	names := map[string]bool{}
	members := make([]present, 0, len(v.Members))
	for _, m := range v.Members {
		names[m.Name] = true
		g, isGuest := guests[m.Peer]
		members = append(members, present{Member: m, guest: isGuest, since: g.since})
	}
	dead := map[election.PeerID]election.Instant{}
	for _, m := range v.Departed {
		if m.Status != membership.Dead {
			continue
		}
		since, known := p.dead[m.Peer]
		if !known {
			since = now
		}
		dead[m.Peer] = since
		at, connected := heard[m.Peer]
		if !connected || names[m.Name] || now >= max(since, at).Add(p.lease) {
			continue
		}
		m.Suspected = at <= since
		members = append(members, present{Member: m, dead: true, since: since})
		p.dueAt = min(p.dueAt, now.Add(p.lease/4))
		if !known {
			p.dueAt = now // this member is asked at once
		}
	}
	p.dead = dead
	slices.SortFunc(members, func(a, b present) int { return cmp.Compare(a.Peer, b.Peer) })
	changed := !slices.EqualFunc(members, p.members, func(a, b present) bool {
		return reflect.DeepEqual(a.Member.Member, b.Member.Member) && a.PeerAddr == b.PeerAddr && a.dead == b.dead && a.guest == b.guest
	})
	p.members = members
	return changed
}

// view returns the present members in the form that the elector takes.
func (p *presence) view() election.View {
	return election.View{Members: each.Of(p.members, func(m present) election.Member { return m.Member.Member })}
}

// warnings returns a warning about each member that gossip has wrongly called dead for long.
func (p *presence) warnings(now election.Instant) (all []api.Warning) {
	for _, m := range p.members {
		if m.dead && !m.Suspected && now.Sub(m.since) >= gossipBlockedAfter || m.guest && now.Sub(m.since) >= gossipLateAfter {
			all = append(all, api.Warning{Code: warnGossip, Message: fmt.Sprintf(
				"gossip does not reach %s, whose direct connection works: open port %d at %s, for UDP and TCP, in both directions",
				m.Name, m.GossipAddr.Port(), m.GossipAddr.Addr())})
		}
	}
	return all
}

// peers is what the loop knows of other agents, from gossip and from their connections.
type peers struct {
	news      membership.View                      // gossip's newest view
	guests    map[election.PeerID]guest            // connected agents that gossip does not show yet
	view      *membership.View                     // gossip's members and the guests
	names     serve.Names                          // nil: must be made again
	heard     map[election.PeerID]election.Instant // last message of each connected peer
	lost      map[election.PeerID]election.Instant // for each peer without a connection: when its connection closed
	connected map[election.PeerID]bool             // replaced, never changed, since pictures share it
}

const maxLost = 1024 // how many entries peers.lost may have

func (p *peers) lose(id election.PeerID, at election.Instant) {
	if len(p.lost) >= maxLost {
		clear(p.lost)
	}
	p.lost[id] = at
}

// viewed handles a new view of gossip's members, or a change of the guests.
func (l *Loop) viewed(v membership.View) {
	l.news = v
	l.Known = slices.DeleteFunc(l.Known, func(r record.Voter) bool { return l.gossiped(r.Peer) != unknown })
	for _, guest := range l.invite(l.roster) {
		l.Network.Dismiss(guest)
	}
	l.warnings.viewed(*l.view)
	l.look()
	l.step(election.ViewChanged{View: l.presence.view()})
	if why := sharedIdentity(v); why != "" {
		l.step(election.Barred{Code: warnIdentity, Detail: why})
	}
}

// review decides again, when that is due, which members are present. It then asks each member that gossip calls dead,
// but whose stream works, for an answer.
func (l *Loop) review() {
	now := l.Clock()
	if now < l.presence.dueAt {
		return
	}
	if l.look() {
		l.step(election.ViewChanged{View: l.presence.view()})
	}
	for _, m := range l.presence.members {
		if m.dead {
			l.Network.Send(m.Peer, election.Inquiry{Election: election.Default}) // about one election, so that the answer is short
		}
	}
}

// look determines who is present, and reports whether that has changed.
func (l *Loop) look() bool {
	changed := l.presence.update(l.Clock(), l.view, l.guests, l.heard)
	if changed {
		l.reach()
	}
	return changed
}

// reach makes the transport connect to the present members, voters first: in a crowd, voters without a roster answer
// only each other for a time. A connection between two agents that neither vote nor lead can wait. A later life has to
// renew its lease in time. So, if gossip has not shown a voter yet, it uses the voter's address on record.
func (l *Loop) reach() {
	peers := make([]transport.Peer, 0, len(l.presence.members))
	votes := func(p election.PeerID, name string) bool {
		return l.roster.Has(p) || l.roster == nil && slices.Contains(l.Voters, name)
	}
	plain := !l.led && (l.roster != nil || len(l.Voters) > 0) && !votes(l.Self.Peer, l.Name)
	for _, m := range l.presence.members {
		if m.Peer == l.Self.Peer || m.guest { // the transport keeps guests by itself
			continue
		}
		first := votes(m.Peer, m.Name)
		peers = append(peers, transport.Peer{ID: m.Peer, Addr: m.PeerAddr, First: first, Later: plain && !first})
	}
	for _, v := range l.Known {
		if l.roster.Has(v.Peer) && v.Peer != l.Self.Peer {
			peers = append(peers, transport.Peer{ID: v.Peer, Addr: v.Stream, First: true})
		}
	}
	l.Network.SetPeers(peers)
	l.Network.VotersOnly(l.roster == nil && votes(l.Self.Peer, l.Name) && len(l.presence.members) >= crowd)
	if l.roster != nil {
		l.Record.SetVoters(l.votersToReach(l.Record.Voters()))
	}
}

// connect records whether a peer is connected. It makes a new map, since pictures share the old one.
func (p *peers) connect(id election.PeerID, up bool) {
	p.connected = maps.Clone(p.connected)
	p.connected[id] = true
	if !up {
		delete(p.connected, id)
	}
}

// namesOf returns the names of all voters and members. A member's name, or the name with which it
// left, replaces the name in the roster.
func namesOf(self election.PeerID, name string, v *membership.View, r *election.Roster) serve.Names {
	names := serve.Names{}
	for _, voter := range r.All() {
		names[voter.Peer] = voter.Name
	}
	for _, m := range slices.Concat(v.Departed, v.Members) {
		names[m.Peer] = m.Name
	}
	names[self] = name
	return names
}
