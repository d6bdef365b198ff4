package elector

import (
	"iter"
	"time"

	"github.com/doyen-election/doyen/bully"
	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/ring"
)

// entry is one election: its contest, when the contest is to be advanced, and what readers are
// shown of the election. It also answers the contest's questions (contest.Facts).
type entry struct {
	// Each step reads the next fields of each election. They come first, to share a line of the cache.
	wakeAt  election.Instant
	touched bool // a message, a command or a fact concerns the election: it is to be advanced
	refresh bool // what readers are shown may have changed
	altered bool // what is on record about the election may have changed
	queued  bool // the election waits for its turn to start a round
	counted bool // agenda.contesting includes the election
	lost    bool // this agent was deaf to the election's leader when it last looked
	contest.Contest

	e            *Elector
	awaitedUntil election.Instant // until then, an agent that hands everything over waits for another leader here
	turn         uint64           // its place in the queue; 0: none
	idleSince    election.Instant // since when the election has had no candidate and no leader; Never: it has one
	listing      listing
	recorded     election.Authority
	shown        *ContestStatus // what readers see; replaced, never changed; nil: readers do not see the election
}

// newSelection returns the configured algorithm, which numbers its rounds from `after` + 1.
func newSelection(cfg election.Config, name election.Name, after uint64) contest.Selection {
	if cfg.Algorithm == election.Ring {
		return ring.New(name, cfg.Self.Peer, cfg.Heartbeat, after)
	}
	return bully.New(name, cfg.Self.Peer, cfg.Heartbeat, after)
}

// advanceContests advances the elections that were touched or whose time has come. If facts have changed on
// which all elections depend, it advances all. Then it advances queued elections while the window has room.
func (e *Elector) advanceContests() {
	e.leaving.proceed(e)
	if facts := e.facts.renew(e); facts != e.advanced {
		e.advanced = facts
		e.touchAll()
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
	for _, c := range inTurn(e.contests.rows) {
		if e.agenda.full() {
			break
		}
		e.advanceContest(c)
	}
	e.agenda.serving = false
}

func (e *Elector) contestsWake() election.Instant {
	wake := e.leaving.nextAt
	for _, c := range e.contests.rows {
		wake = min(wake, c.wakeAt)
	}
	return wake
}

func (e *Elector) advanceContest(c *entry) {
	c.touched, c.refresh, c.wakeAt = false, true, election.Never
	e.agenda.queue(c, false)
	e.carry(c, c.Advance(c))
	e.listening.lose(c)
	if !c.queued {
		c.turn = 0
	}
}

func (e *Elector) carry(c *entry, v contest.Verdict) {
	c.altered = true
	if v.Remember != 0 {
		e.remember(c.Name(), v.Remember)
	}
	e.out.Withdraw = append(e.out.Withdraw, v.StepDown...)
	for _, m := range v.Send {
		if r, ok := m.Message.(election.VoteRequest); ok {
			r.Send = e.sends.Next(e.now)
			m.Message = r
		}
		e.send(m.To, m.Message)
	}
	e.out.Announce = append(e.out.Announce, v.Announce...)
	e.out.Replies = append(e.out.Replies, v.Replies...)
	c.wake(v.WakeAt)
	c.touched, c.refresh = c.touched || v.Again, c.refresh || v.Again
	if v.Queue {
		e.agenda.queue(c, true)
	}
	if v.Beat {
		e.beatAt = e.now
	}
	if v.Won {
		e.agenda.widen()
		if c.Name() == election.RosterElection {
			e.changeAt = e.now // now there is a roster to propose
		}
	}
	if p := e.peers.get(v.Expired); p != nil && e.now > p.heardAt.Add(e.cfg.Lease/2) {
		e.redial(v.Expired, p) // a follower sends no heartbeats, so it can't notice by missing answers that the connection is dead
	}
	if v.Late {
		e.agenda.narrow(e.now, e.cfg.VoteTimeout())
	}
	e.settled = e.settled || c.Leader().Holder != (election.Holder{})
	e.agenda.recount(c)
}

func (c *entry) Now() election.Instant            { return c.e.now }
func (c *entry) Roster() *election.Roster         { return c.e.roster }
func (c *entry) Writes() bool                     { return c.e.writes() }
func (c *entry) Full() bool                       { return c.e.agenda.full() }
func (c *entry) Closed() bool                     { return c.e.agenda.closed() }
func (c *entry) PromiseEnd() election.Instant     { return c.e.voter.PromiseEnd(c.Name()) }
func (c *entry) HoldEnd() election.Instant        { return c.e.voter.HoldEnd(c.Name(), c.e.cfg.Self) }
func (c *entry) Granted() election.Grant          { return c.e.ledger.State().Grant(c.Name()) }
func (c *entry) Connected() []election.PeerID     { return c.e.peers.keys }
func (c *entry) Silent(p election.PeerID) bool    { return c.e.silent(p) }
func (c *entry) Votes(p election.PeerID) bool     { return c.e.votes(p, nil) }
func (c *entry) Reachable(p election.PeerID) bool { return c.e.reachable(p) }

// Runs reports whether the holder is connected, or a voter has named it.
func (c *entry) Runs(h election.Holder) bool {
	return c.e.runs(h) || c.e.listening.named.get(c.Name()).holder == h
}

// ConnectsBy gives time to connect: an agent that has just started may hear of a leader from a
// voter before it is connected to that leader.
func (c *entry) ConnectsBy() election.Instant { return c.e.metAt.Add(2 * c.e.cfg.Heartbeat) }

func (c *entry) Obstacle() election.Obstacle {
	switch e := c.e; {
	case e.stopping:
		return election.ShuttingDown
	case e.draining && c.Name() != election.RosterElection: // in that election no program acts, and the leadership ends with the change
		return election.DrainingNow
	case !e.writes():
		return election.CantWrite
	case e.cfg.Quorum && e.roster == nil:
		return election.NoRoster
	case e.cfg.Quorum && !e.hasMajority():
		return election.CutOff
	case c.Doubts() && c.Name() != election.RosterElection && c.HasHeir(c):
		return election.RunsLate
	}
	return 0
}

func (c *entry) Doubts() bool { return c.e.doubts() || c.LastResort }

const (
	crowd        = 16 // if there are at least so many members, FirstTurn delays the first round
	crowdStagger = 4  // how many staggers an agent waits then for each better member
)

// FirstTurn is when this agent may start a round for the first leader. It delays the round if many members
// have just started: while they are not connected to each other, each takes itself for one of the best, and
// a hundred rounds would keep all too busy to vote. So once enough voters have reported, each agent waits
// some time for each better member.
func (c *entry) FirstTurn() election.Instant {
	e := c.e
	if e.settled || !e.cfg.Quorum || len(e.view.Members) < crowd {
		return 0
	}
	if e.informedAt == 0 {
		e.informedAt = e.now
	}
	c.listing.renew(e, c, e.advanced)
	if c.listing.better < 0 {
		c.listing.better = c.better()
	}
	return e.informedAt.Add(time.Duration(c.listing.better*crowdStagger) * e.cfg.Stagger())
}

// better counts the members above this agent. A member that is not connected counts as a candidate.
func (c *entry) better() (n int) {
	e := c.e
	own := election.Rank{Priority: c.Priority(), JoinedAt: e.cfg.JoinedAt, Peer: e.cfg.Self.Peer}
	for _, m := range e.view.Members {
		r, is := e.candidates.rank(m, c.Name())
		if !is && m.Peer != own.Peer && !e.peers.has(m.Peer) {
			r, is = election.Rank{Priority: own.Priority, JoinedAt: m.JoinedAt, Peer: m.Peer}, true
		}
		if is && r.Priority > 0 && r.Above(own) {
			n++
		}
	}
	return n
}

func (c *entry) Candidates() iter.Seq[election.Rank] {
	return func(yield func(election.Rank) bool) {
		for m := range c.e.candidates.of(c.Name(), c.e.view) {
			if r, why := c.e.present(c.Name(), m); why == 0 && !yield(r) {
				return
			}
		}
	}
}

func (c *entry) Best() election.Rank {
	c.listing.renew(c.e, c, c.e.advanced)
	return c.listing.other
}

func (c *entry) StopsSoon(id election.PeerID) bool {
	if id == c.e.cfg.Self.Peer {
		return c.e.stopping
	}
	p := c.e.peers.get(id)
	return p != nil && p.leaving
}

// SharesRoster is asked before a preemption: an agent with another roster would get no votes under the present one.
func (c *entry) SharesRoster(id election.PeerID) bool {
	p := c.e.peers.get(id)
	return !c.e.cfg.Quorum || c.e.roster == nil || p != nil && p.Holds == c.e.roster.Version
}

func (c *entry) SuspectAt(id election.PeerID) election.Instant {
	p := c.e.peers.get(id)
	if n := c.e.listening.named.get(c.Name()); n.holder.Peer == id && c.deaf() {
		return n.until
	}
	if p == nil {
		return election.Never
	}
	return p.beats.Deadline()
}

// present returns the rank of another member, and why the member can't be elected; 0: it can. A
// member that has just stepped down counts as one that can.
func (e *Elector) present(name election.Name, m election.Member) (election.Rank, election.Obstacle) {
	p := e.peers.get(m.Peer)
	r, is := e.candidates.rank(m, name)
	switch {
	case !is:
		return r, election.NotCandidate
	case r.Priority <= 0:
		return r, election.NoPriority
	case !e.roster.Allows(name, m.Peer, r.Priority):
		return r, election.NotAllowed
	}
	return r, e.away(m, p)
}

// away is why another member can't be elected in any election; 0: it can. Its recent heartbeats
// count for more than gossip's suspicion.
func (e *Elector) away(m election.Member, p *peer) election.Obstacle {
	switch {
	case m.Draining:
		return election.DrainingNow
	case p == nil:
		return election.NotConnected
	case !e.change.Speaks(&p.Peer):
		return election.OlderVersion
	case p.lineage != m.Lineage, e.now >= p.silentFrom(e.cfg.Lease), m.Suspected && !p.cleared && (p.beats == nil || p.overdue(e.now)):
		return election.DoesNotAnswer
	}
	return 0
}
