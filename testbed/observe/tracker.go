package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
)

// maxClaims bounds how many claims are kept: beyond it, each new one replaces the oldest.
const maxClaims = 4096

type View struct {
	Agent  string
	Heard  bool // the agent's watch is followed now; if not, Leader is empty
	Leader string
	Term   uint64
	Leads  bool             // the agent is the leader itself
	Since  election.Instant // when the agent learned of this leader and term
	State  string           // one of api's State constants: from the newest answer, or guessed from a newer change
	Until  election.Instant // the deadline of the leadership, as the agent last reported it; 0 if none
	Reason string           // of the newest change
}

// Agreement is a leader that all agents name, the leader itself included.
type Agreement struct {
	Leader string
	Term   uint64
	Led    election.Instant // since when the leader leads
	At     election.Instant // when the last of the agents learned of it
}

// Tracker combines what was seen of one election at all agents. It is not safe for concurrent
// use.
type Tracker struct {
	lease  time.Duration // 0: without quorum
	agents map[string]*View
	frozen map[string]election.Instant // when the agent was thawed, Never while it is frozen
	claims []*Claim
	lines  map[string]*timeline // by agent
}

// NewTracker returns a tracker of agents with this lease. 0 is for agents without quorum,
// whose leaderships have no deadline.
func NewTracker(lease time.Duration) *Tracker {
	return &Tracker{lease: lease, agents: map[string]*View{}, frozen: map[string]election.Instant{}, lines: map[string]*timeline{}}
}

func (t *Tracker) View(agent string) View { return *t.agent(agent) }

func (t *Tracker) agent(name string) *View {
	if t.agents[name] == nil {
		t.agents[name] = &View{Agent: name}
	}
	return t.agents[name]
}

func (t *Tracker) Apply(e Event) {
	switch e := e.(type) {
	case Changed:
		t.changed(e.Agent, e.Change)
	case Polled:
		t.polled(e)
	case Lost:
		s := t.agent(e.Agent)
		s.Heard, s.Leader, s.Leads, s.Until, s.State = false, "", false, 0, ""
	}
	agent, _, at := e.where()
	if s := t.agent(agent); s.Heard {
		t.line(agent).become(StateSpan{State: s.State, Leader: s.Leader, Term: s.Term, Reason: s.Reason, From: at})
	}
}

func (t *Tracker) line(agent string) *timeline {
	if t.lines[agent] == nil {
		t.lines[agent] = &timeline{}
	}
	return t.lines[agent]
}

func (t *Tracker) changed(name string, c api.Change) {
	s, at, leader := t.agent(name), election.Instant(c.BoottimeNS), cmp.Or(c.Leader, &api.Leader{})
	if c.Type == api.ChangeMeta || c.Type == api.ChangeCandidates { // leader and term are as before
		if s.Leader == leader.ID { // gossip had not shown the leader
			s.Leader = leader.Name
		}
		return
	}
	if !s.Heard || s.Leader != leader.Name || s.Term != c.Term || s.Leads != c.IsLeader || at < s.Since {
		s.Since = at // a snapshot may come before the older change that it includes
	}
	s.Heard, s.Leader, s.Term, s.Leads, s.Reason = true, leader.Name, c.Term, c.IsLeader, c.Reason
	s.State = stateOf(c, s.State)
	if c.Snapshot != nil {
		s.Until = election.Instant(c.Snapshot.ValidUntilBoottimeNS)
	}
	t.disclaim(name, at, c)
	if c.IsLeader {
		t.claim(name, c.Term, at)
	}
	if c.Reason == string(election.ReasonReleased) {
		t.released(name, c.Term, at)
	}
}

// released notes that an agent heard of the release of another agent's term. The other agent
// reports the release itself a little later, and may be killed before that.
func (t *Tracker) released(by string, term uint64, at election.Instant) {
	for _, c := range t.claims {
		if c.Agent != by && c.Term == term {
			c.released = min(c.released, at)
			c.endReleased()
		}
	}
}

// stateOf guesses the state that a change leads to; the next poll corrects it.
func stateOf(c api.Change, state string) string {
	switch {
	case c.Snapshot != nil:
		return c.Snapshot.State
	case c.IsLeader:
		return api.StateLeading
	case c.Leader != nil:
		return api.StateFollowing
	case state == api.StateLeading || state == api.StateFollowing:
		return api.StateElecting
	}
	return state
}

// disclaim ends those claims of the agent that the change contradicts. The change may come from a later life of
// the agent, which led on unwatched: a leader steps down a quarter of a heartbeat before its deadline.
func (t *Tracker) disclaim(name string, at election.Instant, c api.Change) {
	for _, claim := range t.claims {
		switch over := claim.Ended == election.Never && claim.Agent == name && (!c.IsLeader || claim.Term != c.Term); {
		case over && at <= claim.gone:
			claim.Ended, claim.expired = max(at, claim.Start), c.Reason == string(election.ReasonLeaseExpired)
		case over && at < claim.Until:
			claim.Ended = max(claim.Start, claim.gone, claim.Until.Add(-t.lease/24))
		}
	}
}

// claim notes since when the agent leads.
func (t *Tracker) claim(name string, term uint64, at election.Instant) *Claim {
	if c := t.find(name, term); c != nil && c.Ended == election.Never {
		c.Start = min(c.Start, at)
		if at > c.gone { // the agent's next life leads on, and reports when it no longer does
			c.gone, c.Silent = election.Never, false
		}
		return c
	}
	if len(t.claims) == maxClaims {
		t.claims = slices.Delete(t.claims, 0, 1)
	}
	c := &Claim{Agent: name, Term: term, Start: at, Ended: election.Never, gone: election.Never, released: election.Never}
	t.claims = append(t.claims, c)
	return c
}

func (t *Tracker) find(name string, term uint64) *Claim {
	for _, c := range slices.Backward(t.claims) {
		if c.Agent == name && c.Term == term {
			return c
		}
	}
	return nil
}

// polled records an answer. The watch reports when a leadership begins and ends; the answer
// adds the deadline.
func (t *Tracker) polled(p Polled) {
	s, e := t.agent(p.Agent), p.Election
	if s.Heard && s.Term == e.Term && s.Leads == e.IsLeader {
		s.Until, s.State = election.Instant(e.ValidUntilBoottimeNS), e.State
	}
	if !e.IsLeader {
		t.askedLate(p)
		return
	}
	c := t.find(p.Agent, e.Term)
	if c == nil {
		c = t.claim(p.Agent, e.Term, p.Received)
	}
	// If the agent claims to lead past its own deadline, that still counts as a claim.
	c.Until, c.answered = max(c.Until, election.Instant(e.ValidUntilBoottimeNS), p.Sent), 0
	if thawed, ok := t.frozen[p.Agent]; ok && p.Sent > thawed {
		c.Silent = false
		delete(t.frozen, p.Agent)
	}
}

// askedLate notes an answer to a poll that was sent after the deadline of a claim, if the agent
// has not taken that claim back. The answer shows that the agent could run.
func (t *Tracker) askedLate(p Polled) {
	for _, c := range t.claims {
		open := c.Ended == election.Never && !c.Silent
		if open && c.Agent == p.Agent && c.Until != 0 && p.Sent > c.Until && c.answered == 0 {
			c.answered = p.Received
		}
	}
}

// Froze notes that an agent was stopped and can't report anything.
func (t *Tracker) Froze(agent string) {
	t.frozen[agent] = election.Never
	t.silence(agent)
}

// Thawed notes since when a frozen agent has run again. The agent's earlier claims end
// at their deadlines, unless the agent reports again that it leads.
func (t *Tracker) Thawed(agent string, at election.Instant) {
	if _, ok := t.frozen[agent]; ok {
		t.frozen[agent] = at
	}
}

// Exited notes when an agent's process ended. Reports from before that may still arrive, and end
// the agent's claims. A report of the agent's next life ends a claim just before the claim's deadline.
func (t *Tracker) Exited(agent string, at election.Instant) {
	delete(t.frozen, agent)
	t.silence(agent)
	t.line(agent).become(StateSpan{State: StateDown, From: at})
	for _, c := range t.claims {
		if c.Agent != agent {
			continue
		}
		c.gone = min(c.gone, at)
		c.endReleased()
		if t.lease == 0 {
			c.Ended = min(c.Ended, at)
		}
	}
}

func (t *Tracker) silence(agent string) {
	for _, c := range t.claims {
		if c.Agent == agent && c.Ended == election.Never {
			c.Silent = true
		}
	}
}

// Agreement returns the leader that all the agents name. It returns false unless the leader is
// one of them and itself reports that it leads.
func (t *Tracker) Agreement(agents []string) (Agreement, bool) {
	var a Agreement
	for i, name := range agents {
		s := t.agent(name)
		if !s.Heard || s.Leader == "" || i > 0 && (s.Leader != a.Leader || s.Term != a.Term) {
			return Agreement{}, false
		}
		a.Leader, a.Term, a.At = s.Leader, s.Term, max(a.At, s.Since)
		if s.Leads {
			a.Led = s.Since
		}
	}
	return a, a.Led != 0
}

// Claims returns all remembered claims, in the order in which they became known.
func (t *Tracker) Claims() []Claim {
	return each.Of(t.claims, func(c *Claim) Claim { return *c })
}

// Leader returns the agent that reports that it leads: if several do, the one with the highest
// term; "" if none does.
func (t *Tracker) Leader() string {
	leader, term := "", uint64(0)
	for name, s := range t.agents {
		if s.Leads && (leader == "" || s.Term > term) {
			leader, term = name, s.Term
		}
	}
	return leader
}

// LedAfter returns the first leadership that began at the instant or later.
func (t *Tracker) LedAfter(at election.Instant) (Claim, bool) {
	var first *Claim
	for _, c := range t.claims {
		if c.Start >= at && (first == nil || c.Start < first.Start) {
			first = c
		}
	}
	if first == nil {
		return Claim{}, false
	}
	return *first, true
}

// Overlaps returns every stretch in which two agents claimed to lead, as far as the claims are
// remembered.
func (t *Tracker) Overlaps() []OverlapSpan {
	return Overlaps(t.Claims(), t.lease)
}
