package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/membership"
)

// enter adds a change to the history, with what this agent knew at that moment.
func (l *Loop) enter(now election.Instant, before *serve.Picture, a election.Announcement, c api.Change) {
	l.History.Add(api.Transition{
		Time: c.Time, Election: c.Election, Type: c.Type, Leader: c.Leader, Term: c.Term,
		Reason: c.Reason, Evidence: l.evidence(l.Self, now, before.Status, l.picture.Load().Status, a), BoottimeNS: c.BoottimeNS,
		HeardBoottimeNS: int64(lastHeard(before, a)),
	})
}

// lastHeard returns when the former leader was last heard, if it fell silent; 0: no leader was known before, or
// the leader itself announced the end.
func lastHeard(before *serve.Picture, a election.Announcement) election.Instant {
	announced := a.Event == election.NoLeader && a.Reason != election.ReasonLeaseExpired
	c, _ := serve.ContestOf(before.Status, a.Election)
	if announced || c.Leader == (election.Holder{}) || c.Leader == a.Leader {
		return 0
	}
	return c.HeardAt
}

// evidence describes what this agent knew, when the leader changed, about the former leader, the
// present one and the voters.
func (p *peers) evidence(self election.Holder, now election.Instant, before, after *elector.Status, a election.Announcement) string {
	var facts []string
	if c, ok := serve.ContestOf(before, a.Election); ok && c.Leader != (election.Holder{}) && c.Leader != a.Leader {
		facts = append(facts, p.describeOld(self, now, c))
	}
	if c, ok := serve.ContestOf(after, a.Election); ok && a.Event != election.NoLeader {
		facts = append(facts, p.describeNew(self, now, c, a, after.Quorum))
	}
	if q := after.Quorum; q.Enabled && a.Event == election.NoLeader {
		facts = append(facts, fmt.Sprintf("%d of %d voters can be reached, %d needed", q.Reachable, q.Voters, q.Needed))
	}
	return strings.Join(facts, "; ")
}

// describeOld describes the former leader.
func (p *peers) describeOld(self election.Holder, now election.Instant, c elector.ContestStatus) string {
	left := "its lease had " + short(c.ValidUntil.Sub(now)) + " left"
	switch over := now.Sub(c.ValidUntil); {
	case over < 0:
	case over < time.Millisecond:
		left = "its lease had just expired"
	default:
		left = "its lease had expired " + short(over) + " earlier"
	}
	if c.Leader == self {
		return fmt.Sprintf("this agent led in term %d, last confirmed %s earlier, %s", c.Term, short(now.Sub(c.HeardAt)), left)
	}
	peer := c.Leader.Peer
	link := "its connection is open"
	if !p.connected[peer] {
		link = "it is not connected"
		if at, ok := p.lost[peer]; ok {
			link = "its connection had closed " + short(now.Sub(at)) + " earlier"
		}
	}
	return fmt.Sprintf("%s led in term %d, last heard %s earlier, %s, %s, gossip: %s",
		p.names.Of(peer), c.Term, short(now.Sub(c.HeardAt)), left, link, p.gossiped(peer))
}

// describeNew describes the present leader.
func (p *peers) describeNew(self election.Holder, now election.Instant, c elector.ContestStatus, a election.Announcement, q elector.QuorumStatus) string {
	until := "its lease lasts " + short(c.ValidUntil.Sub(now))
	switch {
	case a.Leader == self && q.Enabled:
		return fmt.Sprintf("a majority of %d voters granted term %d, %s", q.Voters, a.Term, until)
	case a.Leader == self:
		return fmt.Sprintf("this agent leads in term %d without a quorum", a.Term)
	}
	return fmt.Sprintf("%s claims term %d in its heartbeats, %s", p.names.Of(a.Leader.Peer), a.Term, until)
}

const unknown membership.Status = "unknown" // the status of a peer that gossip does not know

func (p *peers) gossiped(id election.PeerID) membership.Status {
	all := slices.Concat(p.view.Members, p.view.Departed)
	if m, known := each.First(all, func(m membership.Member) bool { return m.Peer == id }); known {
		return m.Status
	}
	return unknown
}

// short formats a duration for people, rounded to the millisecond.
func short(d time.Duration) string { return max(d, 0).Round(time.Millisecond).String() }
