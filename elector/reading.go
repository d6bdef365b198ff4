package elector

import (
	"maps"
	"slices"
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/roster"
)

// Status returns a snapshot. Nothing that it refers to changes later.
func (e *Elector) Status(now election.Instant) *Status {
	s := &Status{At: now, Self: e.cfg.Self, Draining: e.draining, Roster: e.roster,
		Quorum: e.quorumStatus(), Change: e.change.Status(rosterFacts{e}), Contests: e.Contests(), Counters: e.recentCounters(now)}
	s.Warnings = e.warnings(s.Quorum)
	return s
}

// Contests returns the part of Status about the elections. It shares unchanged parts with its earlier results.
func (e *Elector) Contests() []*ContestStatus {
	facts := e.facts.renew(e)
	changed := e.shown == nil
	for _, c := range e.contests.rows {
		if c.refresh || facts != e.shownFacts {
			c.listing.renew(e, c, facts)
			changed = e.show(c) || changed
			c.refresh = c.listing.fleeting || c.Heeds(e.now) // in both cases, what readers are shown may change by time alone
		}
	}
	e.shownFacts = facts
	if !changed {
		return e.shown
	}
	e.shown = make([]*ContestStatus, 0, len(e.contests.rows))
	for _, c := range e.contests.rows {
		if c.shown != nil {
			e.shown = append(e.shown, c.shown)
		}
	}
	return e.shown
}

// Drives returns the term in which this agent leads the roster election, and until when it leads. The
// term is 0 if it does not lead. Contests omits the roster election.
func (e *Elector) Drives() (election.Term, election.Instant) {
	l := rosterFacts{e}.Lead()
	return l.Term, l.Until
}

// show updates what readers are shown of an election, and reports whether that has changed.
func (e *Elector) show(c *entry) bool {
	before := c.shown
	if c.Name() == election.RosterElection || len(c.listing.standing) == 0 && !e.exists(c) {
		c.shown = nil
		return before != nil
	}
	s := e.contestStatus(c)
	if before != nil && s.agrees(before) {
		return false
	}
	c.shown = new(s) // a copy, because readers may still use the former one
	return true
}

// countersEvery is how old the counters in a Status may be: to copy them costs more than most steps.
const countersEvery = time.Second

func (e *Elector) recentCounters(now election.Instant) Counters {
	if e.counted.Sent == nil || now >= e.countedAt.Add(countersEvery) {
		e.counted, e.countedAt = e.Counters(), now
	}
	return e.counted
}

func (e *Elector) Counters() Counters {
	c := e.counters
	c.Sent, c.Received, c.Dropped = maps.Clone(c.Sent), maps.Clone(c.Received), maps.Clone(c.Dropped)
	c.Dropped["term_leap"] += c.TermLeaps
	c.VotesGranted, c.VotesRefused = e.voter.Counted()
	return c
}

func (s *ContestStatus) agrees(t *ContestStatus) bool {
	return s.Election == t.Election && s.State == t.State && s.Leader == t.Leader && s.Term == t.Term && s.Meta == t.Meta &&
		s.ValidUntil == t.ValidUntil && s.HeardAt == t.HeardAt && slices.Equal(s.Candidates, t.Candidates) && slices.Equal(s.Ranks, t.Ranks)
}

func (e *Elector) contestStatus(c *entry) ContestStatus {
	known := c.Leader()
	s := ContestStatus{Election: c.Name(), Leader: known.Holder, Term: known.Term, Meta: c.meta(known.Holder),
		ValidUntil: known.Until, HeardAt: known.Heard, Candidates: c.listing.candidates, Ranks: c.listing.standing, State: e.state(c, c.listing.able)}
	if known.Holder == (election.Holder{}) {
		s.Term = c.Highest()
	}
	return s
}

func (e *Elector) state(c *entry, candidates bool) State {
	switch {
	case c.Role() == contest.Leader:
		return Leading
	case c.Leader().Holder != (election.Holder{}) && !c.Vacant():
		return Following
	case e.cfg.Quorum && !e.facts.own.majority:
		return NoQuorum
	case candidates || c.Role() != contest.Follower || c.Active():
		return Electing
	}
	return Idle
}

func (e *Elector) quorumStatus() QuorumStatus {
	q := QuorumStatus{Enabled: e.cfg.Quorum}
	if e.roster == nil {
		return q
	}
	voters := e.roster.Counted()
	q.Voters, q.Needed = len(voters), quorum.Majority(len(voters))
	q.Exists = quorum.Confirmed(e.roster, e.supports)
	for _, v := range voters {
		if !e.supports(v.Peer) {
			continue
		}
		q.Reachable++
		without := func(id election.PeerID) bool { return id != v.Peer && e.supports(id) }
		q.Edge = q.Edge || q.Exists && !quorum.Confirmed(e.roster, without)
	}
	return q
}

// supports reports whether a voter counts towards the quorum.
func (e *Elector) supports(id election.PeerID) bool { return e.reachable(id) && !e.withheld[id] }

// Status is an immutable picture of what one agent knows, for readers outside the loop.
// Deadlines are instants: each reader computes what is left of a lease when it answers. So an
// agent whose loop hangs does not go on claiming to lead.
type Status struct {
	At       election.Instant // when it was taken
	Self     election.Holder
	Draining bool
	Quorum   QuorumStatus
	Roster   *election.Roster       // nil before genesis is committed
	Change   *election.ChangeStatus // the change of the voters that is in progress; nil: there is none
	Contests []*ContestStatus       // sorted by election
	Warnings []Warning              // sorted by code
	Counters Counters
}

// QuorumStatus is whether a majority of the voters can be reached.
type QuorumStatus struct {
	Enabled   bool
	Voters    int
	Needed    int
	Reachable int  // how many are reachable and renew all that this agent leads; this agent included
	Exists    bool // the voters that count as Reachable are a majority (of each half, if the roster is marked)
	Edge      bool // a majority exists, and the loss of one more voter may end it
}

// ContestStatus is one election as this agent knows it.
type ContestStatus struct {
	Election   election.Name
	State      State
	Leader     election.Holder // zero: no leader is known
	Term       election.Term   // the leader's; if none is known, the highest term seen
	Meta       string          // what the leader's program reports about itself; empty: nothing, or it is not known
	ValidUntil election.Instant
	HeardAt    election.Instant  // when the leader's last heartbeat arrived; if this agent leads, when a majority last renewed
	Candidates []election.PeerID // the candidates that can be elected, best first
	Ranks      []election.Rank   // of all candidates, also of those that can't be elected now, in no order
}

type State string

const (
	Idle      State = "idle"      // no leader, and nobody can be elected
	Following State = "following" // another agent leads
	Electing  State = "electing"  // selection or voting is in progress, or is due to start
	Leading   State = "leading"   // this agent leads, inside its lease
	NoQuorum  State = "no_quorum" // no leader, and no majority of the voters can be reached
)

// LeaderAt returns the leader at that instant; none after its lease has expired.
func (c ContestStatus) LeaderAt(now election.Instant) (election.Holder, bool) {
	if c.Leader == (election.Holder{}) || now >= c.ValidUntil {
		return election.Holder{}, false
	}
	return c.Leader, true
}

// Warning is a condition that an operator should end, as facts. It is about one agent, and the same
// condition at several agents gives several warnings. Package agent/words has the texts.
type Warning struct {
	Code    string          // which condition; codes stay the same from version to version
	Agent   string          // the name of the agent that the warning is about; empty: this agent
	Peer    election.PeerID // the peer ID that the roster has under that name
	Cluster string          // the cluster of that agent
	Own     string          // the cluster of this agent
	Former  bool            // this agent may have been a voter of Cluster
	Voters  string          // the voters that the agent reports, or that this agent was started with, or that are missing
	Doubt   roster.Doubt    // why this agent does not adopt those voters
	Forming quorum.Problem  // why there is no roster yet
	Barred  election.Barred
}

// Counters count what has happened since the start. They only rise.
type Counters struct {
	Steps        uint64
	Sent         map[string]uint64 // by kind of message
	Received     map[string]uint64 // by kind of message
	Dropped      map[string]uint64 // by reason
	VotesGranted uint64
	VotesRefused uint64
	contest.Counts
}
