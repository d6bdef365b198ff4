package serve

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/membership"
)

// Picture is what readers see of the agent. A picture is never changed: a newer one replaces it. Each answer
// computes what remains of a lease at that moment. So even answers from an old picture claim no leadership
// that has ended.
type Picture struct {
	Status    *elector.Status
	View      *membership.View
	Names     Names // the names of members and voters
	Connected map[election.PeerID]bool
	Warnings  []api.Warning
	Unhealthy string          // why a check keeps this host from being a candidate in "default"
	Expected  []election.Name // elections that exist even without a candidate, sorted
	Jobs      []api.Job       // as this voter has them on record, sorted by name
}

// Names are the names of agents.
type Names map[election.PeerID]string

// Of returns the name of a peer, or its ID if its name is not known.
func (n Names) Of(id election.PeerID) string {
	if name, ok := n[id]; ok {
		return name
	}
	return string(id)
}

// Leader describes a peer that leads. Its Meta is empty.
func (p *Picture) Leader(id election.PeerID) *api.Leader {
	l := &api.Leader{Name: p.Names.Of(id), ID: string(id)}
	if m, ok := p.member(id); ok {
		l.Addr = address(m.PeerAddr)
	}
	return l
}

// LeaderOf describes the leader of an election.
func (p *Picture) LeaderOf(c elector.ContestStatus) *api.Leader {
	l := p.Leader(c.Leader.Peer)
	l.Meta = c.Meta
	return l
}

func (p *Picture) member(id election.PeerID) (membership.Member, bool) {
	i, ok := slices.BinarySearchFunc(p.View.Members, id, func(m membership.Member, id election.PeerID) int {
		return cmp.Compare(m.Peer, id)
	})
	if !ok {
		return membership.Member{}, false
	}
	return p.View.Members[i], true
}

// contest returns the picture's part about one election, and whether the election exists. The default
// election and the expected elections exist even before their first candidate.
func (p *Picture) contest(name election.Name) (elector.ContestStatus, bool) {
	if c, ok := ContestOf(p.Status, name); ok {
		return c, true
	}
	empty := elector.ContestStatus{Election: name, State: elector.Idle}
	if p.Status.Quorum.Enabled && !p.Status.Quorum.Exists {
		empty.State = elector.NoQuorum
	}
	_, expected := slices.BinarySearch(p.Expected, name)
	return empty, expected || name == election.Default
}

// ContestOf returns the part of a status about one election.
func ContestOf(s *elector.Status, name election.Name) (elector.ContestStatus, bool) {
	i, ok := slices.BinarySearchFunc(s.Contests, name, byElection)
	if !ok {
		return elector.ContestStatus{}, false
	}
	return *s.Contests[i], true
}

// rank returns the rank of a peer that is a candidate in the election, even of one that can't lead now.
func (p *Picture) rank(name election.Name, id election.PeerID) (election.Rank, bool) {
	c, _ := p.contest(name)
	return each.First(c.Ranks, func(r election.Rank) bool { return r.Peer == id })
}

// Election returns the answer about one election at the given instant. It names no leader whose
// lease has ended since the picture was taken.
func (p *Picture) Election(c elector.ContestStatus, now election.Instant, index uint64) api.Election {
	e := api.Election{Election: string(c.Election), State: string(c.State), Term: uint64(c.Term), Authority: api.AuthorityView,
		Candidates: make([]string, len(c.Candidates)), Index: index}
	for i, id := range c.Candidates {
		e.Candidates[i] = p.Names.Of(id)
	}
	if p.Status.Quorum.Enabled {
		e.Authority = api.AuthorityLease
	}
	holder, ok := c.LeaderAt(now)
	if !ok {
		if c.State == elector.Leading || c.State == elector.Following {
			e.State = api.StateElecting
		}
		return e
	}
	e.Leader = p.LeaderOf(c)
	e.IsLeader = holder == p.Status.Self && c.State == elector.Leading
	e.LeaseRemainingMS = c.ValidUntil.Sub(now).Milliseconds()
	e.ValidUntilBoottimeNS, e.ValidForMS = int64(c.ValidUntil), e.LeaseRemainingMS
	e.ViewAgeMS = max(0, now.Sub(c.HeardAt).Milliseconds())
	return e
}

// Line is a line of a watch that shows a whole election as it is now. Its index is that of the election's newest change.
func (p *Picture) Line(kind string, name election.Name, now election.Instant, index uint64) api.Change {
	c, _ := p.contest(name)
	e := p.Election(c, now, index)
	return api.Change{Index: index, Time: time.Now().UTC(), Type: kind, Election: string(name),
		Leader: e.Leader, IsLeader: e.IsLeader, Term: e.Term, BoottimeNS: int64(now), Snapshot: &e}
}

// inquired adapts the answer e to what a majority has reported: the term and the holder in s. The result names
// a leader only if e names the same leader in the same term. It does so only until the end of the lease in e,
// since the voters' promises last longer than that lease.
func (p *Picture) inquired(e api.Election, s election.Record) api.Election {
	e.Authority = api.AuthorityQuorum
	if e.Leader != nil && e.Leader.ID == string(s.Holder.Peer) && e.Term == uint64(s.Term) {
		return e
	}
	e.Leader, e.IsLeader, e.LeaseRemainingMS, e.ValidUntilBoottimeNS, e.ValidForMS, e.ViewAgeMS = nil, false, 0, 0, 0, 0
	e.Term = max(e.Term, uint64(s.Term))
	if e.State == api.StateLeading || e.State == api.StateFollowing {
		e.State = api.StateElecting
	}
	return e
}

// contests returns every election, sorted by name.
func (p *Picture) contests() []*elector.ContestStatus {
	all := p.Status.Contests
	if len(all) == 0 {
		c, _ := p.contest(election.Default)
		all = []*elector.ContestStatus{&c}
	}
	for _, name := range p.Expected {
		i, known := slices.BinarySearchFunc(all, name, byElection)
		if !known {
			c, _ := p.contest(name)
			all = slices.Insert(slices.Clip(all), i, &c) // clipped, so that Insert copies the list that readers share
		}
	}
	return all
}

func byElection(c *elector.ContestStatus, name election.Name) int {
	return cmp.Compare(c.Election, name)
}

// Elections returns the answer about every election, sorted by name.
func (p *Picture) Elections(now election.Instant, index func(string) uint64) []api.Election {
	return each.Of(p.contests(), func(c *elector.ContestStatus) api.Election { return p.Election(*c, now, index(string(c.Election))) })
}

// LedUntil yields every election, with the end of its leader's lease as known here; 0 without a leader.
func (p *Picture) LedUntil(yield func(election.Name, election.Instant) bool) {
	for _, c := range p.contests() {
		until := c.ValidUntil
		if c.Leader == (election.Holder{}) {
			until = 0
		}
		if !yield(c.Election, until) {
			return
		}
	}
}

// Quorum returns the answer whether a majority can be reached.
func (p *Picture) Quorum() api.Quorum {
	q := p.Status.Quorum
	state := api.QuorumLost
	switch {
	case !q.Enabled:
		state = api.QuorumExists // without voters, none is needed
	case q.Exists && q.Edge && q.Voters > 1:
		state = api.QuorumEdge
	case q.Exists:
		state = api.QuorumExists
	}
	return api.Quorum{Enabled: q.Enabled, Voters: q.Voters, Needed: q.Needed, Reachable: q.Reachable, State: state}
}

// address writes an address; the text is empty if the address is not known.
func address(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// roundUp returns a round-trip time in milliseconds, rounded up, since 0 would mean that it was
// never measured.
func roundUp(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

// Departed returns the departed members, without the former identities of agents that are back
// under another identity. A departed voter is always among them: its vote is missing.
func (p *Picture) Departed() []membership.Member {
	return slices.DeleteFunc(slices.Clone(p.View.Departed), func(d membership.Member) bool {
		return !p.Status.Roster.Has(d.Peer) && slices.ContainsFunc(p.View.Members, func(m membership.Member) bool { return m.Name == d.Name })
	})
}

// Members returns the answer about every member, by name, the departed ones included.
func (p *Picture) Members() []api.Member {
	all := make([]api.Member, 0, len(p.View.Members)+len(p.View.Departed))
	for _, m := range slices.Concat(p.View.Members, p.Departed()) {
		entry := api.Member{
			Name: m.Name, ID: string(m.Peer), Version: m.Version, JoinedAt: time.Unix(0, m.JoinedAt).UTC(),
			GossipAddr: address(m.GossipAddr), PeerAddr: address(m.PeerAddr), HTTPAddr: address(m.PageAddr),
			Status: string(m.Status), Drained: m.Draining, Voter: p.Status.Roster.Has(m.Peer),
			Connected: p.Connected[m.Peer] || m.Peer == p.Status.Self.Peer, RTTMS: roundUp(m.RTT),
		}
		if rank, ok := p.rank(election.Default, m.Peer); ok {
			entry.Priority, entry.Candidate = rank.Priority, rank.Priority > 0 // a candidate with priority 0 never leads
		}
		if m.Peer == p.Status.Self.Peer {
			entry.Reason = p.Unhealthy
		}
		all = append(all, entry)
	}
	slices.SortStableFunc(all, func(a, b api.Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}
