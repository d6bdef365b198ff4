package contest

import (
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Selection is Bully or Ring.
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

// Contest is one election as this agent takes part in it. Only one goroutine uses it.
//
// Invariant: vacantSince is Never exactly while some agent is known to lead or may be leading.
type Contest struct {
	LastResort bool // this agent may lead only if no other candidate can; to be set whenever Stand is called

	held      *tenure // the term that this agent leads, or has stepped down from but not released
	bid       *bid    // a nominee's, or a leader's for a higher term; a leader that steps down keeps it until the release
	cfg       *election.Config
	counts    *Counts
	name      election.Name
	candidate bool
	priority  int
	selection Selection
	highest   election.Term // the highest term seen from any agent
	asked     asked
	leader    Known
	ended     election.Term // all terms up to this one have ended: their leader released them, or a later term followed; only with quorum
	gone      gone
	rumour    rumour
	order     *order               // a program's request to replace the word; nil: there is none
	readers   []election.RequestID // programs that want to read the word

	vacantSince election.Instant
	missedSince election.Instant                     // as vacantSince, but a rumour does not end it
	notBefore   election.Instant                     // no round starts before this: a bid has failed, or the target of a transfer goes first
	standDowns  map[election.PeerID]election.Instant // agent, perhaps this one → until when it lets others go first
	failures    int
	begun       bool          // this agent started the round that is in progress
	late        election.Term // the term of the last bid that won no majority in time

	unheard      election.Release // the release of a term that a former life won; agents that connect later get it too
	unheardUntil election.Instant

	rival rival                   // a candidate of higher priority, seen while this agent leads
	vain  map[election.PeerID]int // how many transfers went to the last target, which has not led since
}

// New returns a contest in which no leader is known. Its bids are for terms above highest and spent.
func New(name election.Name, cfg *election.Config, counts *Counts, s Selection, highest, spent election.Term) *Contest {
	return &Contest{name: name, cfg: cfg, counts: counts, selection: s, vacantSince: election.Never, missedSince: election.Never,
		standDowns: map[election.PeerID]election.Instant{}, highest: highest, asked: upTo(spent)}
}

// Select continues with another algorithm. A round that is in progress ends.
func (c *Contest) Select(s Selection) {
	c.selection.Stop()
	c.selection, c.begun = s, false
}

// Known is a leader. Its last heartbeat came at Heard, and this agent names it as the leader until Until.
type Known struct {
	Holder election.Holder
	Term   election.Term
	Rank   election.Rank // only without quorum
	Until  election.Instant
	Heard  election.Instant
}

// gone is the last leader that no voter has confirmed. Its terms have ended, up to the field term. If it really
// led, other leaders' terms up to that one have ended too: claims of them count only if they were sent after the
// instant `at`. Without quorum, terms of two agents have no order, and `at` is 0.
type gone struct {
	holder election.Holder
	term   election.Term
	at     election.Instant
}

// outdates reports whether the claim of a term is a late message. The claim was sent after the instant `sent`.
func (g gone) outdates(h election.Holder, t election.Term, sent election.Instant) bool {
	return t <= g.term && (h == g.holder || sent < g.at)
}

// rumour is a leader that this agent awaits: voters have reported it, or it claims to lead, but
// how long its lease runs is not known yet.
type rumour struct {
	holder     election.Holder
	term       election.Term
	heedUntil  election.Instant // by then, a heartbeat of this leader should have arrived
	promiseEnd election.Instant
}

type Role uint8

const (
	Follower Role = iota // it follows a leader, or waits for one
	Nominee              // it was selected, and asks for votes
	Leader               // it leads; it may also ask for a higher term
	Leaving              // it has stepped down, and waits until all that act under its term have stopped
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

// tenure is a term that this agent leads, or has led and not released yet.
type tenure struct {
	term      election.Term
	lease     *quorum.Lease                        // nil without quorum
	firstBeat election.SendID                      // the first heartbeat that claimed the term; 0: none has
	disputed  map[election.PeerID]election.Instant // voter → since when it disputes the term, and so can't renew it
	leaving   *departure                           // nil while it leads
	outworn   bool                                 // this leader must take a higher term at once (K4d, K4e)
	former    bool                                 // a former life won the term
	word      *wording                             // nil without quorum, and in the roster election
}

// Advance does what is due because of the time, or because facts have changed.
func (c *Contest) Advance(f Facts) Verdict {
	s := new(step).begin(c, f)
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
	c.endOrder(s)
	c.answerReaders(s)
	return s.out
}

// expireKnown stops naming a leader after its lease has expired.
func (c *Contest) expireKnown(s *step) {
	if c.leader.Holder == (election.Holder{}) || c.Role() == Leader {
		return
	}
	if s.now < c.leader.Until {
		s.wake(c.leader.Until)
		return
	}
	s.out.Expired = c.leader.Holder.Peer
	if k := c.leader; c.cfg.Quorum && c.ended < k.Term-1 && c.gone.term < k.Term {
		c.gone = gone{holder: k.Holder, term: k.Term - 1, at: s.now} // k claimed k.Term, so k's lower terms have ended
	}
	c.forget(s, election.ReasonLeaseExpired)
}

func (c *Contest) forget(s *step, why election.Reason) {
	if c.leader.Holder != (election.Holder{}) {
		c.announce(s, election.Announcement{Event: election.NoLeader, Term: c.leader.Term, Reason: why})
		c.leader = Known{}
	}
}

// outdate records that all terms up to t have ended: messages about them are late and are dropped.
func (c *Contest) outdate(t election.Term) {
	if c.cfg.Quorum {
		c.ended = max(c.ended, t)
	}
}

// follow names k as the leader.
func (c *Contest) follow(s *step, k Known, confirmed bool) {
	if confirmed && k.Term > 0 {
		c.outdate(k.Term - 1)
	}
	before := c.leader
	if before.Holder == k.Holder && before.Term == k.Term {
		k.Until = max(k.Until, before.Until)
	}
	c.abandon(s)
	c.selection.Stop()
	c.found(k)
	switch {
	case before.Holder != k.Holder:
		c.announce(s, election.Announcement{Event: election.Following, Leader: k.Holder, Term: k.Term, Reason: election.ReasonElected})
	case before.Term != k.Term:
		c.announce(s, election.Announcement{Event: election.NewTerm, Leader: k.Holder, Term: k.Term, Reason: election.ReasonElected})
	}
}

// found records that a leader is known, so this agent seeks none any more.
func (c *Contest) found(k Known) {
	c.leader = k
	c.rumour = rumour{}
	c.failures = 0
	c.vacantSince, c.missedSince, c.notBefore = election.Never, election.Never, 0
	delete(c.vain, k.Holder.Peer)
}

// announce reports a change to the programs of this host, except in the roster election.
func (c *Contest) announce(s *step, a election.Announcement) {
	if c.name != election.RosterElection {
		a.Election = c.name
		s.out.Announce = append(s.out.Announce, a)
	}
}

// field returns this agent's rank and the candidates that can be elected now.
func (c *Contest) field(s *step) election.Field {
	f := election.Field{Self: c.rank(), Able: c.unable(s) == 0, Closed: s.Closed(), Patience: c.patience(s)}
	if c.Role() == Leader {
		f.Leads = &election.Leadership{Leader: c.cfg.Self, Term: c.held.term}
	}
	if f.Able {
		f.Ranks = append(f.Ranks, f.Self)
	}
	now := s.now // if the loop's body used s, s would be allocated on the heap
	for r := range s.Candidates() {
		if c.mayLead(now, r.Peer) {
			f.Ranks = append(f.Ranks, r)
		}
	}
	slices.SortFunc(f.Ranks, func(a, b election.Rank) int { return b.Compare(a) })
	return f
}

func (c *Contest) rank() election.Rank {
	return election.Rank{Priority: c.priority, JoinedAt: c.cfg.JoinedAt, Peer: c.cfg.Self.Peer}
}

func (c *Contest) mayLead(now election.Instant, p election.PeerID) bool {
	return now >= c.standDowns[p]
}

func (c *Contest) unable(s *step) election.Obstacle {
	switch {
	case !c.candidate || c.priority <= 0:
		return election.NotCandidate
	case !c.allowed(s):
		return election.NotAllowed
	case c.Role() == Leaving:
		return election.HandingOver
	case !c.mayLead(s.now, c.cfg.Self.Peer):
		return election.SteppedDown
	case c.asked.after(c.highest) > election.MaxTerm:
		return election.NoTermLeft
	}
	why := s.Obstacle()
	if why == election.RunsLate {
		overdue := c.missedSince.Add(2 * c.cfg.Lease)
		if s.now < overdue {
			s.wake(overdue)
			return why
		}
		why = 0 // for two leases, no agent that is on time has led either
	}
	if why == 0 && c.holds(s) {
		return election.KeepsPromise
	}
	return why
}

func (c *Contest) allowed(s *step) bool {
	return s.roster.Allows(c.name, c.cfg.Self.Peer, c.priority)
}

// patience is until when this agent waits for another agent's round: one vote timeout after the
// old lease has expired at every voter.
func (c *Contest) patience(s *step) election.Instant {
	over := max(s.now, c.leader.Until, c.rumour.promiseEnd, s.PromiseEnd())
	return over.Add(c.cfg.VoteTimeout())
}
