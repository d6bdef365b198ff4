package roster

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Facts is what a Change asks. The answers do not change while it takes a step.
type Facts interface {
	Now() election.Instant
	Connected() []election.PeerID   // sorted
	Peer(election.PeerID) *Peer     // nil: it is not connected
	Reachable(election.PeerID) bool // the agent's vote can be had
	Older(election.PeerID) bool     // the agent came back with an older state than it had reported
	NameOf(election.PeerID) string
	Lead() Lead
	Obstacle() election.Obstacle // why this agent is not elected there; 0: nothing is known
}

// Lead is who leads the roster election. The rest is about this agent's own leadership.
type Lead struct {
	Leader election.PeerID // empty: none is known
	Term   election.Term   // 0: this agent does not lead
	Until  election.Instant
	WonBy  *election.Roster // whose majority first promised the term
}

// Verdict is what a Change asks for after one step, to be carried out at once, in this order.
type Verdict struct {
	Report   []election.PeerID // send them what this agent holds of the roster, and ask what they hold
	Send     []election.Envelope
	Replies  []election.Reply
	Withdraw bool             // end the candidacy in the roster election, and what it led
	Stand    bool             // then be a candidate there
	Aside    bool             // then be no candidate there, but lead on
	Dropped  string           // why the message was dropped; empty: it was not
	WakeAt   election.Instant // call Advance then
}

// Change is this agent's part in a change of the roster. The agent is a candidate in the roster
// election only while it has a change to drive: one asked for here, or one that was left (R3).
type Change struct {
	cfg       *election.Config
	given     *election.Config // as this agent was started
	ledger    *quorum.Ledger
	voter     *quorum.Voter
	formation *quorum.Formation
	want      *wanted
	cancel    *wantedCancel
	restore   *wantedRestore
	driver    *quorum.Driver    // nil: this agent drives nothing
	barred    *election.Refusal // nil: this agent is not barred
	lost      *election.Refusal // why the driver went back by itself; nil: it did not
	resendAt  election.Instant
	inheritAt election.Instant // when this agent drives on what a former driver left behind
	askAt     election.Instant // the voters are not asked for their rosters before then
	seenJoint election.Version
	since     election.Instant // when the change under way began; Never: there is none
	agreed    election.Version // the newest stable roster known to be committed
}

func New(cfg, given *election.Config, l *quorum.Ledger, v *quorum.Voter, f *quorum.Formation) *Change {
	return &Change{cfg: cfg, given: given, ledger: l, voter: v, formation: f, since: election.Never}
}

type step struct {
	Facts
	now    election.Instant
	roster *election.Roster
	lead   Lead
	out    Verdict
}

func (s *step) begin(c *Change, f Facts) *step {
	s.Facts, s.now, s.roster, s.out.WakeAt = f, f.Now(), c.voter.Roster(), election.Never
	return s
}

func (s *step) wake(at election.Instant) { s.out.WakeAt = min(s.out.WakeAt, at) }

func (s *step) send(to election.PeerID, m election.Message) {
	s.out.Send = append(s.out.Send, election.Envelope{To: to, Message: m})
}

func (s *step) reply(id election.RequestID, refusal *election.Refusal) {
	s.out.Replies = append(s.out.Replies, election.Reply{Request: id, Refusal: refusal})
}

// wanted is a change asked for at this agent. It starts only from the roster that was held then:
// from a later one it would undo what came between.
type wanted struct {
	goal     *election.Roster
	former   *election.Roster
	request  election.RequestID
	deadline election.Instant
}

// Command accepts a change to drive. The reply follows once the change is done.
func (c *Change) Command(f Facts, in election.ChangeRoster) Verdict {
	s := new(step).begin(c, f)
	var refusal *election.Refusal
	switch {
	case in.Cancel:
		refusal = c.cancelChange(s, in.Request)
	case in.Restore:
		refusal = c.restoreFormer(s, in.Request)
	default:
		refusal = c.begin(s, in)
	}
	if refusal != nil {
		s.reply(in.Request, refusal)
	}
	return s.out
}

func (c *Change) begin(s *step, in election.ChangeRoster) *election.Refusal {
	if refusal := c.nothingToChange(s); refusal != nil {
		return refusal
	}
	switch {
	case c.want != nil || c.driver != nil || s.roster.Joint():
		return &election.Refusal{Why: election.DeniedOtherChange}
	case !quorum.Confirmed(s.roster, s.Reachable):
		return &election.Refusal{Why: election.DeniedNoMajority}
	}
	change := c.revised
	if len(in.Add) > 0 || len(in.Remove) > 0 {
		change = c.withVoters
	}
	goal, refusal := change(s, in)
	if refusal != nil {
		return refusal
	}
	c.want = &wanted{goal: goal, former: s.roster, request: in.Request,
		deadline: s.now.Add(10*c.cfg.Lease + 10*time.Second)}
	return nil
}

// nothingToChange is why this agent can't change the roster; nil: it can.
func (c *Change) nothingToChange(s *step) *election.Refusal {
	switch {
	case !c.cfg.Quorum:
		return &election.Refusal{Why: election.DeniedNoVoters}
	case s.roster == nil:
		return &election.Refusal{Why: election.DeniedNoRoster}
	case !s.roster.Has(c.cfg.Self.Peer) && c.driver == nil:
		return &election.Refusal{Why: election.DeniedNotVoter}
	}
	return nil
}

func (c *Change) withVoters(s *step, in election.ChangeRoster) (*election.Roster, *election.Refusal) {
	r := *s.roster
	r.Voters = slices.DeleteFunc(slices.Clone(r.Voters), func(v election.Voter) bool {
		return slices.Contains(in.Remove, v.Peer)
	})
	if len(r.Voters)+len(in.Remove) != len(s.roster.Voters) {
		return nil, &election.Refusal{Why: election.DeniedRemoveNotVoter}
	}
	for _, v := range in.Add {
		if slices.ContainsFunc(r.Voters, func(w election.Voter) bool { return w.Peer == v.Peer || w.Name == v.Name }) {
			return nil, &election.Refusal{Why: election.DeniedAddVoter, Agent: v.Name}
		}
		if !s.Reachable(v.Peer) {
			if p := s.Peer(v.Peer); p != nil && !c.Speaks(p) {
				return nil, &election.Refusal{Why: election.DeniedOlderVersion, Agent: v.Name}
			}
			return nil, &election.Refusal{Why: election.DeniedNotConnected, Agent: v.Name}
		}
		r.Voters = append(r.Voters, v)
	}
	if len(r.Voters) == 0 {
		return nil, &election.Refusal{Why: election.DeniedLastVoter}
	}
	election.SortVoters(r.Voters)
	return &r, nil
}

// goneSinceAsked is why the wanted change can't start any more: a voter that is to be added can
// no longer be reached, or an agent can't follow the revised roster. nil: it can.
func (c *Change) goneSinceAsked(s *step) *election.Refusal {
	for _, v := range c.want.goal.Voters {
		if !s.roster.Has(v.Peer) && !s.Reachable(v.Peer) {
			return &election.Refusal{Why: election.DeniedNotConnected, Agent: v.Name}
		}
	}
	if slices.Equal(c.want.goal.Voters, s.roster.Voters) {
		return c.misfit(s, c.want.goal)
	}
	return nil
}

// Bar ends this agent's part for good. Advance refuses what was asked for.
func (c *Change) Bar(why *election.Refusal) { c.barred, c.driver = why, nil }
