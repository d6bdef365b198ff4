package elector

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Status returns a picture of everything for readers outside the loop. The
// picture shares nothing that changes.
func (e *Elector) Status(now election.Instant) *Status {
	s := &Status{At: now, Self: e.cfg.Self, Draining: e.draining, Roster: e.roster,
		Quorum: e.quorumStatus(), Counters: e.Counters()}
	for _, c := range e.contests.rows {
		if c.name != election.RosterElection {
			s.Contests = append(s.Contests, e.contestStatus(c))
		}
	}
	s.Warnings = e.warnings(s.Quorum)
	return s
}

// Counters returns what was counted since the start.
func (e *Elector) Counters() Counters {
	c := e.counters
	c.Sent, c.Received, c.Dropped = maps.Clone(c.Sent), maps.Clone(c.Received), maps.Clone(c.Dropped)
	c.VotesGranted, c.VotesRefused = e.voter.Counted()
	return c
}

func (e *Elector) contestStatus(c *contest) ContestStatus {
	f := e.field(c)
	s := ContestStatus{Election: c.name, Leader: c.leader.holder, Term: max(c.leader.term, 0),
		ValidUntil: c.leader.until, HeardAt: c.leader.heard}
	if c.leader.holder == (election.Holder{}) {
		s.Term = c.highest
	}
	for _, r := range f.Ranks {
		s.Candidates = append(s.Candidates, r.Peer)
	}
	if m, ok := e.view.Find(c.leader.holder.Peer); ok && !slices.Contains(s.Candidates, m.Peer) && e.runs(c.leader.holder) {
		if r, stands := m.Rank(c.name); stands {
			s.Candidates = append(s.Candidates, r.Peer)
		}
	}
	s.State = e.state(c, len(f.Ranks) > 0)
	return s
}

func (e *Elector) state(c *contest, candidates bool) State {
	switch {
	case c.role == leader:
		return Leading
	case c.leader.holder != (election.Holder{}) && c.vacantSince == election.Never:
		return Following
	case e.cfg.Quorum && !e.hasMajority():
		return NoQuorum
	case candidates || c.role != follower || c.selection.Active():
		return Electing
	}
	return Idle
}

func (e *Elector) quorumStatus() QuorumStatus {
	q := QuorumStatus{Enabled: e.cfg.Quorum}
	if e.roster == nil {
		return q
	}
	voters := e.roster.All()
	q.Voters, q.Needed = len(voters), quorum.Majority(len(voters))
	q.Exists = e.hasMajority()
	q.Edge = false
	for _, v := range voters {
		if !e.reachable(v.Peer) {
			continue
		}
		q.Reachable++
		without := func(id election.PeerID) bool { return id != v.Peer && e.reachable(id) }
		q.Edge = q.Edge || q.Exists && !quorum.Confirmed(e.roster, without)
	}
	return q
}

func (e *Elector) warnings(q QuorumStatus) []Warning {
	var ws []Warning
	warn := func(code, message string) { ws = append(ws, Warning{Code: code, Message: message}) }
	if e.ledger.Failing() {
		warn("disk_failing", "the state file can't be written: this agent grants no votes and stands in no election until it can; free or mend the disk of its data dir")
	}
	if foreign := e.describeForeign(); foreign != "" {
		warn("foreign_cluster", foreign)
	}
	if !e.cfg.Quorum {
		return ws
	}
	if unwritable := e.describeUnwritable(); unwritable != "" {
		warn("voter_disk_failing", unwritable)
	}
	if e.roster == nil {
		warn("formation", "no roster is formed yet, so nobody can vote: "+e.formation.Problem())
		sortWarnings(ws)
		return ws
	}
	if differ := e.describeOtherVoters(); differ != "" {
		warn("voters_differ", differ)
	}
	if others := e.describeChanged(); others != "" {
		warn("identity_changed", others)
	}
	switch {
	case !q.Exists:
		warn("quorum_lost", "a majority of the voters can't be reached: nobody can lead until more voters are back")
	case q.Edge && q.Voters > 1 && q.Reachable == q.Voters:
		warn("quorum_edge", fmt.Sprintf("%d voters survive no loss: add another with doyen voters add", q.Voters))
	case q.Edge && q.Voters > 1:
		warn("quorum_edge", "one more voter lost and nobody can lead: bring the missing voters back")
	}
	sortWarnings(ws)
	return ws
}

// describeOtherVoters says that this agent was started with other voters than
// those that were formed. Later changes of the roster are nobody's mistake.
func (e *Elector) describeOtherVoters() string {
	var names []string
	for _, v := range e.roster.All() {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	first := e.roster.Version == election.Version{Counter: 1}
	left := slices.Contains(e.cfg.Voters, e.cfg.Name) && !slices.Contains(names, e.cfg.Name)
	if len(e.cfg.Voters) == 0 || slices.Equal(slices.Sorted(slices.Values(e.cfg.Voters)), names) || !first && !left {
		return ""
	}
	return fmt.Sprintf("this agent was started with --voters %s, but the voters are %s: the flag only makes the first roster; change it with doyen voters add or remove",
		strings.Join(e.cfg.Voters, ","), strings.Join(names, ","))
}

// describeChanged names the live agents that the roster knows under another
// identity: their data dirs were lost or exchanged, and their promises with them.
func (e *Elector) describeChanged() string {
	var texts []string
	for _, m := range e.view.Members {
		v, ok := e.roster.Named(m.Name)
		if !ok || v.Peer == m.Peer {
			continue
		}
		texts = append(texts, m.Name+" is no voter: the roster names it under another identity ("+string(v.Peer)+
			"), whose data dir it has not; restore that, or run on a voter: doyen voters replace "+m.Name)
	}
	return strings.Join(texts, "; ")
}

func sortWarnings(ws []Warning) {
	slices.SortFunc(ws, func(a, b Warning) int { return cmp.Compare(a.Code, b.Code) })
}
