package roster

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// Facts are what a Change asks about its agent and the others. The answers do not change during a step.
type Facts interface {
	Now() election.Instant
	Connected() []election.PeerID   // sorted
	Peer(election.PeerID) *Peer     // nil: it is not connected
	Reachable(election.PeerID) bool // the agent can be asked for its vote
	Older(election.PeerID) bool     // the agent is back with an older state than it had reported before
	NameOf(election.PeerID) string
	Lead() Lead
	Obstacle() election.Obstacle // why this agent can't be elected in the roster election; 0: no reason is known
}

// Lead is who leads the roster election. Term, Until and WonBy are about this agent's own leadership.
type Lead struct {
	Leader election.PeerID  // empty: no leader is known
	Term   election.Term    // 0: this agent does not lead
	Until  election.Instant // 0: this agent does not lead
	WonBy  *election.Roster // the roster whose majority first promised the term
}

// Verdict is what a Change asks its caller to do after one step: at once, in the order of the fields.
type Verdict struct {
	Report   []election.PeerID // send these agents this agent's roster, and ask for theirs
	Send     []election.Envelope
	Replies  []election.Reply
	Withdraw bool             // end the candidacy and the leadership of this agent in the roster election
	Stand    bool             // after that, be a candidate in the roster election
	Aside    bool             // after that, be no candidate in the roster election, but go on leading it
	Dropped  string           // why the message was dropped; empty: it was accepted
	WakeAt   election.Instant // when Advance is to be called
}

// Change is this agent's part in a change of the roster. The agent is a candidate in the roster election only
// while it has a change to drive: one that was asked for here, or one that its driver left unfinished (R3).
type Change struct {
	cfg       *election.Config
	given     *election.Config // the configuration with which this agent started
	ledger    *quorum.Ledger
	voter     *quorum.Voter
	formation *quorum.Formation
	want      *wanted
	cancel    *wantedCancel
	restore   *wantedRestore
	driver    *quorum.Driver    // nil: this agent drives no change
	barred    *election.Refusal // nil: this agent is not barred
	differing []*Peer           // those with a differsSince
	lost      *election.Refusal // why the driver went back without a command; nil: it did not
	resendAt  election.Instant
	inheritAt election.Instant // when this agent continues the change that a former driver left
	askAt     election.Instant // until then this agent does not ask the voters for their rosters again
	seenJoint election.Version
	since     election.Instant // when the present change started; Never: there is none
	agreed    election.Version // the newest stable roster known to be committed
	agrees    election.Version // the newest roster that this agent had on disk without having voted for a later driver
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

// wanted is a change that was asked for at this agent. It starts only from the roster that this agent
// had when it was asked. From a later roster, the change would undo what was changed in between.
type wanted struct {
	goal     *election.Roster
	former   *election.Roster
	request  election.RequestID
	deadline election.Instant
}

// Command starts, cancels or undoes a change. If it does not reply at once, Advance replies later.
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
	if refusal == nil {
		c.want = &wanted{goal: goal, former: s.roster, request: in.Request,
			deadline: s.now.Add(10*c.cfg.Lease + 10*time.Second)}
	}
	return refusal
}

// nothingToChange is why this agent can't change the roster; nil if it can.
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

// goneSinceAsked is why the wanted change can't start any more; nil if it can. A voter to be added may be
// out of reach by now, or an agent may be unable to follow the revised roster.
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

// Bar ends this agent's part until its next start. Advance then refuses what was asked for.
func (c *Change) Bar(why *election.Refusal) { c.barred, c.driver = why, nil }
