package contest

import (
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Selection is an algorithm that decides who should lead.
type Selection interface {
	Start(election.Instant, election.Field) election.Verdict
	Receive(election.Instant, election.Field, election.PeerID, election.Message) election.Verdict
	Tick(election.Instant, election.Field) election.Verdict
	Nominated(f election.Field, votes func(election.PeerID) bool) []election.Envelope
	Confirmed(election.Field, election.Leadership) []election.Envelope
	StandBack(now election.Instant, f election.Field, better election.Rank)
	Stop()
	Active() bool
}

// Contest is one election as this agent takes part in it. It is not safe for
// concurrent use.
//
// Invariant: vacantSince is Never exactly while another agent is known to lead, or may.
type Contest struct {
	held      *tenure // the term that this agent leads, or has stepped down from
	bid       *bid    // for a first term, or while it leads for a higher one; kept until the release
	cfg       *Config
	name      election.Name
	candidate bool
	priority  int
	selection Selection
	highest   election.Term // seen from any agent
	asked     asked
	leader    Known
	ended     election.Term // every term up to it has ended: its leader released it, or a later one was heard; with quorum
	gone      gone
	rumour    rumour

	vacantSince    election.Instant
	notBefore      election.Instant // it starts no round: a bid has failed, or another agent is the target of a transfer
	standDownUntil election.Instant // this agent lets others go first
	standDowns     map[election.PeerID]election.Instant
	failures       int
	begun          bool          // the round under way is this agent's own
	late           election.Term // of the last bid that won no majority in time

	rival rival // a higher priority seen while leading
	offer offer // the election was offered to, in vain so far
}

// New returns the contest of an election of which no leader is known yet. Every term up
// to spent counts as asked for, and no term up to highest is asked for.
func New(name election.Name, cfg *Config, s Selection, highest, spent election.Term) *Contest {
	return &Contest{name: name, cfg: cfg, selection: s, vacantSince: election.Never,
		standDowns: map[election.PeerID]election.Instant{}, highest: highest, asked: upTo(spent)}
}

// Clone returns a copy that shares nothing that changes, with that copy of the selection.
func (c *Contest) Clone(s Selection) *Contest {
	n := *c
	n.selection, n.asked.spans, n.standDowns = s, slices.Clone(c.asked.spans), maps.Clone(c.standDowns)
	if c.held != nil {
		h := *c.held
		h.disputed = maps.Clone(h.disputed)
		if h.lease != nil {
			h.lease = h.lease.Clone()
		}
		if h.leaving != nil {
			d := *h.leaving
			h.leaving = &d
		}
		n.held = &h
	}
	if c.bid != nil {
		b := *c.bid
		b.lease, b.refused = b.lease.Clone(), maps.Clone(b.refused)
		n.bid = &b
	}
	return &n
}

// Known is a leader that this agent has heard, and names until then.
type Known struct {
	Holder election.Holder
	Term   election.Term
	rank   election.Rank
	Until  election.Instant
	Heard  election.Instant
}

// gone is the last leader that released a term which no voter has confirmed. Its own
// terms up to that one have ended. Those of others have too, if it did lead: so what
// they claim counts only if it was sent after at, when they would know. Without
// quorum terms order nothing, and at is zero.
type gone struct {
	holder election.Holder
	term   election.Term
	at     election.Instant
}

// outdates reports whether the claim of a term is a late message. It was sent after
// the instant that it echoes.
func (g gone) outdates(h election.Holder, t election.Term, echo election.Instant) bool {
	return t <= g.term && (h == g.holder || echo < g.at)
}

// rumour is a leader that voters have reported but that was not heard yet.
type rumour struct {
	holder     election.Holder
	term       election.Term
	heedUntil  election.Instant // it should have been heard by then
	promiseEnd election.Instant
}

// Role is this agent's part in an election. It follows from what is held and asked for.
type Role uint8

const (
	Follower Role = iota // of a leader, or waiting for one
	Nominee              // selected, asking for votes
	Leader               // it may ask for a higher term at the same time
	Leaving              // it has stepped down, and waits for all that act on its behalf to stop
)

func (c *Contest) Role() Role {
	switch {
	case c.held == nil && c.bid == nil:
		return Follower
	case c.held == nil:
		return Nominee
	case c.held.leaving == nil:
		return Leader
	}
	return Leaving
}

// tenure is a term that this agent leads, or led and has not released yet.
type tenure struct {
	term      election.Term
	lease     *quorum.Lease                        // nil without quorum
	firstBeat election.SendID                      // the first heartbeat that claimed the term
	disputed  map[election.PeerID]election.Instant // since when, voters that can't renew the term
	leaving   *departure                           // nil while it leads
}

// Advance does what is due by time, or by facts that have changed.
func (c *Contest) Advance(f Facts) Verdict {
	s := new(step).begin(f)
	c.expireKnown(s)
	s.wake(c.holdChanges(f))
	switch c.Role() {
	case Leader:
		c.lead(s)
	case Leaving:
		c.finishLeaving(s)
	default:
		c.seek(s)
	}
	return c.end(s)
}

// end completes a step.
func (c *Contest) end(s *step) Verdict {
	c.begun = c.begun && c.selection.Active()
	return s.out
}

// expireKnown stops naming a leader whose lease has expired.
func (c *Contest) expireKnown(s *step) {
	if c.leader.Holder == (election.Holder{}) || c.Role() == Leader {
		return
	}
	if s.now < c.leader.Until {
		s.wake(c.leader.Until)
		return
	}
	s.out.Expired = c.leader.Holder.Peer
	c.forget(s, election.ReasonLeaseExpired)
}

func (c *Contest) forget(s *step, why election.Reason) {
	if c.leader.Holder == (election.Holder{}) {
		return
	}
	c.announce(s, election.Announcement{Event: election.NoLeader, Term: c.leader.Term, Reason: why})
	c.leader = Known{}
}

// outdate records that the terms up to t have ended, so that a late message of their
// leaders is not believed. Without quorum terms order nothing.
func (c *Contest) outdate(t election.Term) {
	if c.cfg.Quorum {
		c.ended = max(c.ended, t)
	}
}

// follow names a leader, unless a newer one is known.
func (c *Contest) follow(s *step, k Known) {
	if k.Term < c.leader.Term {
		return
	}
	if confirmed := c.confirms(s, k.Holder, k.Term); confirmed && k.Term > 0 {
		c.outdate(k.Term - 1)
	}
	c.rumour = rumour{}
	before := c.leader
	if before.Holder == k.Holder && before.Term == k.Term {
		k.Until = max(k.Until, before.Until)
	}
	c.abandon(s)
	c.selection.Stop()
	c.failures = 0
	c.vacantSince, c.notBefore = election.Never, 0
	c.leader = k
	c.offer.taken(k.Holder.Peer)
	switch {
	case before.Holder != k.Holder:
		c.announce(s, election.Announcement{Event: election.Following, Leader: k.Holder, Term: k.Term, Reason: election.ReasonElected})
	case before.Term != k.Term:
		c.announce(s, election.Announcement{Event: election.NewTerm, Leader: k.Holder, Term: k.Term, Reason: election.ReasonElected})
	}
}

// announce reports a change to this host's programs. The roster election concerns the
// voters alone.
func (c *Contest) announce(s *step, a election.Announcement) {
	if c.name == election.RosterElection {
		return
	}
	a.Election = c.name
	s.out.Announce = append(s.out.Announce, a)
}

// field is who could lead the election right now.
func (c *Contest) field(s *step) election.Field {
	f := election.Field{Self: c.rank(), Able: c.unable(s) == 0, Full: s.Closed(), Patience: c.patience(s)}
	if c.Role() == Leader {
		f.Leads = &election.Leadership{Leader: c.cfg.Self, Term: c.held.term}
	}
	if f.Able {
		f.Ranks = append(f.Ranks, f.Self)
	}
	now := s.now // s itself must not escape
	for r := range s.Candidates() {
		if c.mayLead(now, r) {
			f.Ranks = append(f.Ranks, r)
		}
	}
	slices.SortFunc(f.Ranks, func(a, b election.Rank) int { return b.Compare(a) })
	return f
}

func (c *Contest) rank() election.Rank {
	return election.Rank{Priority: c.priority, JoinedAt: c.cfg.JoinedAt, Peer: c.cfg.Self.Peer}
}

func (c *Contest) mayLead(now election.Instant, r election.Rank) bool {
	return now >= c.standDowns[r.Peer]
}

func (c *Contest) unable(s *step) election.Obstacle {
	switch {
	case !c.candidate || c.priority <= 0:
		return election.NotCandidate
	case c.Role() == Leaving:
		return election.HandingOver
	case s.now < c.standDownUntil:
		return election.SteppedDown
	case c.asked.after(c.highest) > election.MaxTerm:
		return election.NoTermLeft
	}
	if why := s.Obstacle(); why != 0 {
		return why
	}
	if c.holds(s) {
		return election.KeepsPromise
	}
	return 0
}

// patience is how long to wait for another agent's round: until the old lease has
// expired at every voter, and a vote timeout more.
func (c *Contest) patience(s *step) election.Instant {
	over := max(s.now, c.leader.Until, c.rumour.promiseEnd, s.PromiseEnd())
	return over.Add(c.cfg.VoteTimeout())
}
