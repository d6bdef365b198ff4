package elector

import (
	"slices"

	"github.com/doyen-election/doyen/bully"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/ring"
)

// selection is an algorithm that decides who should lead. The field is given
// anew in each call.
type selection interface {
	Start(election.Instant, election.Field) election.Verdict
	Receive(election.Instant, election.Field, election.PeerID, election.Message) election.Verdict
	Tick(election.Instant, election.Field) election.Verdict
	Confirmed(election.Field, election.Leadership) []election.Envelope
	Nominated(f election.Field, votes func(election.PeerID) bool) []election.Envelope
	StandBack(now election.Instant, f election.Field, better election.Rank)
	Stop()
	Active() bool
}

// contest is one election as this agent takes part in it.
//
// Invariant: vacantSince is Never exactly while another agent is known to lead, or may.
type contest struct {
	name      election.Name
	standing  bool
	priority  int
	selection selection
	held      *tenure       // the term that this agent leads, or has stepped down from
	bid       *bid          // for a first term, or while it leads for a higher one; kept until the release
	highest   election.Term // seen from anybody
	asked     asked
	leader    known
	over      election.Term // every term up to it is over: its leader gave it back, or a later one was heard; with quorum
	gone      gone
	rumour    rumour

	vacantSince    election.Instant
	notBefore      election.Instant // it starts no round: an attempt has failed, or another agent is the target of a transfer
	standDownUntil election.Instant // this agent lets others go first
	standDowns     map[election.PeerID]election.Instant
	failures       int

	rival rival // a higher priority seen while leading
	offer offer // the election was offered to, in vain so far

	idleSince election.Instant // nobody stands and nobody leads; Never: somebody does
	listing   listing
	shown     *ContestStatus // to readers; replaced, never changed; nil: it is not
	refresh   bool           // what readers are shown may have changed
	touched   bool           // something was heard or done about it: it is to be advanced
	wakeAt    election.Instant

	// Kept by the agenda, which says what they mean.
	turn            uint64        // since when it wants to start a round; 0: it does not
	begun           bool          // the round under way is this agent's own
	late            election.Term // of the last attempt that won no majority in time
	queued, counted bool
}

// known is a leader this agent heard. It is named until its lease, as seen
// from here, is over.
type known struct {
	holder election.Holder
	term   election.Term
	rank   election.Rank
	until  election.Instant
	heard  election.Instant
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

// rumour is a leader that voters told of but that was not heard yet.
type rumour struct {
	holder     election.Holder
	term       election.Term
	heedUntil  election.Instant // it should have been heard by then
	promiseEnd election.Instant
}

// role is this agent's part in an election. It follows from what is held and asked for.
type role uint8

const (
	follower role = iota // of a leader, or waiting for one
	nominee              // selected, asking for votes
	leader               // it may ask for a higher term at the same time
	draining             // it has stepped down, and waits for all that act on its behalf to stop
)

func (c *contest) role() role {
	switch {
	case c.held == nil && c.bid == nil:
		return follower
	case c.held == nil:
		return nominee
	case c.held.leaving == nil:
		return leader
	}
	return draining
}

// tenure is a term that this agent leads, or led and has not released yet.
type tenure struct {
	term      election.Term
	lease     *quorum.Lease                        // nil without quorum
	firstBeat election.SendID                      // the first heartbeat that claimed the term
	disputed  map[election.PeerID]election.Instant // since when, voters that can't renew the term
	leaving   *departure                           // nil while it leads
}

func newSelection(cfg Config, name election.Name) selection {
	if cfg.Algorithm == Ring {
		return ring.New(name, cfg.Self.Peer, cfg.Timing.Heartbeat)
	}
	return bully.New(name, cfg.Self.Peer, cfg.Timing.Heartbeat)
}

// advanceContests does what is due in all elections: in those that something was
// heard about, whose time has come, or in every one if facts changed that matter
// to all.
func (e *Elector) advanceContests() {
	if facts := e.facts.renew(e); facts != e.advanced {
		e.advanced = facts
		e.touchAll()
	}
	for _, c := range e.contests.rows {
		e.agenda.recount(c) // what was heard may have begun or ended a round
	}
	for _, c := range e.contests.rows {
		if c.touched || c.wakeAt <= e.now {
			e.advanceContest(c)
		}
	}
	if e.agenda.queued == 0 || e.agenda.full() {
		return
	}
	e.agenda.serving = true
	for _, c := range e.queued() {
		if e.agenda.full() {
			break
		}
		e.advanceContest(c)
	}
	e.agenda.serving = false
}

// contestsWake is when the next election is to be advanced.
func (e *Elector) contestsWake() election.Instant {
	wake := election.Never
	for _, c := range e.contests.rows {
		wake = min(wake, c.wakeAt)
	}
	return wake
}

// advanceContest does what is due in one election.
func (e *Elector) advanceContest(c *contest) {
	c.touched, c.refresh, c.wakeAt = false, true, election.Never
	e.agenda.queue(c, false)
	defer e.agenda.settle(c)
	e.expireKnown(c)
	e.wakeForHold(c)
	switch c.role() {
	case leader:
		e.lead(c)
	case draining:
		e.finishDraining(c)
	default:
		e.seek(c)
	}
}

// expireKnown stops naming a leader whose lease is over.
func (e *Elector) expireKnown(c *contest) {
	if c.leader.holder == (election.Holder{}) || c.role() == leader {
		return
	}
	if e.now < c.leader.until {
		c.wake(c.leader.until)
		return
	}
	e.redialLeader(c.leader.holder.Peer)
	e.forget(c, election.ReasonLeaseExpired)
}

// forget stops naming the leader, and says so.
func (e *Elector) forget(c *contest, why election.Reason) {
	if c.leader.holder == (election.Holder{}) {
		return
	}
	e.announce(c, election.Announcement{Event: election.NoLeader, Term: c.leader.term, Reason: why})
	c.leader = known{}
}

// outdate takes note that the terms up to t are over, so that a late word of
// their leaders is not believed. Without quorum terms order nothing.
func (e *Elector) outdate(c *contest, t election.Term) {
	if e.cfg.Quorum {
		c.over = max(c.over, t)
	}
}

// follow names a leader, unless a newer one is known.
func (e *Elector) follow(c *contest, k known) {
	if k.term < c.leader.term {
		return
	}
	if confirmed := e.confirms(c, k.holder, k.term); confirmed && k.term > 0 {
		e.outdate(c, k.term-1)
	}
	c.rumour = rumour{}
	before := c.leader
	if before.holder == k.holder && before.term == k.term {
		k.until = max(k.until, before.until)
	}
	e.abandon(c)
	c.selection.Stop()
	c.failures = 0
	e.settled = true
	c.vacantSince, c.notBefore = election.Never, 0
	c.leader = k
	c.offer.taken(k.holder.Peer)
	switch {
	case before.holder != k.holder:
		e.announce(c, election.Announcement{Event: election.Following, Leader: k.holder, Term: k.term, Reason: election.ReasonElected})
	case before.term != k.term:
		e.announce(c, election.Announcement{Event: election.NewTerm, Leader: k.holder, Term: k.term, Reason: election.ReasonElected})
	}
}

// announce tells this host's programs. The roster election is nobody's
// business but the voters'.
func (e *Elector) announce(c *contest, a election.Announcement) {
	if c.name == election.RosterElection {
		return
	}
	a.Election = c.name
	e.out.Announce = append(e.out.Announce, a)
}

// field is who could lead the election right now.
func (e *Elector) field(c *contest) election.Field {
	f := election.Field{Self: e.ownRank(c), Able: e.unable(c) == 0, Full: e.agenda.closed(), Patience: e.patience(c)}
	if c.role() == leader {
		f.Leads = &election.Leadership{Leader: e.cfg.Self, Term: c.held.term}
	}
	if f.Able {
		f.Ranks = append(f.Ranks, f.Self)
	}
	for _, m := range e.view.Members {
		if r, ok := e.candidate(c, m); ok {
			f.Ranks = append(f.Ranks, r)
		}
	}
	slices.SortFunc(f.Ranks, func(a, b election.Rank) int { return b.Compare(a) })
	return f
}

// candidate returns the rank of another member that can be elected.
func (e *Elector) candidate(c *contest, m election.Member) (election.Rank, bool) {
	r, ok := e.present(c, m)
	return r, ok && e.now >= c.standDowns[m.Peer]
}

// present returns the rank of another member that stands and can be reached,
// even if it has just stepped down.
func (e *Elector) present(c *contest, m election.Member) (election.Rank, bool) {
	p := e.peers.get(m.Peer)
	r, stands := p.rank(m, c.name)
	return r, stands && r.Priority > 0 && e.able(m, p)
}

// able reports whether another member could be elected, as far as the election
// does not matter.
func (e *Elector) able(m election.Member, p *peer) bool {
	switch {
	case m.Peer == e.cfg.Self.Peer, m.Draining:
		return false
	case p == nil, !p.connected, p.boot != m.Boot, e.now >= p.silentFrom(e.cfg.Timing.Lease), e.foreign(p):
		return false
	}
	return !m.Suspected || p.beating(e.now)
}

// beating reports whether live heartbeats overrule gossip's suspicion.
func (p *peer) beating(now election.Instant) bool { return p.beats != nil && !p.overdue(now) }

func (e *Elector) ownRank(c *contest) election.Rank {
	return election.Rank{Priority: c.priority, JoinedAt: e.cfg.JoinedAt, Peer: e.cfg.Self.Peer}
}

// unable says why this agent can't be nominated now; 0: it can.
func (e *Elector) unable(c *contest) election.Obstacle {
	switch {
	case !c.standing || c.priority <= 0:
		return election.NotCandidate
	case e.stopping:
		return election.ShuttingDown
	case e.draining && c.name != election.RosterElection: // no program acts on that one, and it ends with the change
		return election.DrainingNow
	case c.role() == draining:
		return election.HandingOver
	case !e.writes():
		return election.CantWrite
	case e.now < c.standDownUntil:
		return election.SteppedDown
	case e.cfg.Quorum && e.roster == nil:
		return election.NoRoster
	case e.cfg.Quorum && !e.hasMajority():
		return election.CutOff
	case c.asked.after(c.highest) > election.MaxTerm:
		return election.NoTermLeft
	case e.holds(c):
		return election.KeepsPromise
	}
	return 0
}

// patience is how long to wait for somebody else's round: until the old lease
// is over at every voter, and a vote timeout more.
func (e *Elector) patience(c *contest) election.Instant {
	over := max(e.now, c.leader.until, c.rumour.promiseEnd, e.voter.PromiseEnd(c.name))
	return over.Add(e.cfg.Timing.voteTimeout())
}
