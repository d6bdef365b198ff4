package quorum

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Driver carries out one change of the roster, forward or back, within one ballot. The ballot is
// the term in which this agent leads the roster election (R3, R4, R9 to R13).
//
// Invariant: all proposals of a ballot have different versions. The driver proposes the stable roster of
// the new voters only after majorities of both halves have accepted the mark, and after the earlier
// promises of a majority of the former voters have ended. If the mark is inherited, the promises of a
// majority of the new voters must have ended too. After this proposal the driver can't go back.
type Driver struct {
	Ballot    election.Term
	drift     float64
	proposal  *election.Roster
	joint     election.Roster // the joint roster of this change; never changed
	inherited bool            // an earlier ballot may have set the mark, and may even have committed the new voters (R13)
	back      bool
	accepted  map[election.PeerID]election.Instant   // voter → by when the promises that it reported have surely ended, by any clock within the drift
	refused   map[election.PeerID]bool               // these voters have granted a higher ballot
	reported  map[election.PeerID]election.Term      // voter → the highest term in its last report, even if that is not believed
	floor     election.Term                          // the highest term that acceptances of the marked roster have reported (R4 ii)
	waited    bool                                   // the marked or revised roster was accepted, WaitsUntil has passed, and CaughtUp holds
	words     map[election.PeerID]election.WordsHeld // what acceptances of the marked roster have reported
	waits     bool                                   // the lease changes, and not the voters: promises under the former lease must end first
}

// NewDriver starts a change of the voters of a stable roster: it proposes an unmarked joint roster (R9).
func NewDriver(ballot election.Term, drift float64, stable *election.Roster, next []election.Voter) *Driver {
	joint := *stable
	joint.Next, joint.Committed = next, false
	return newDriver(ballot, drift, joint)
}

// NewRevision starts a change of settings or rights, with the same voters (R14). The changed
// roster keeps its floor, is proposed once, and needs a majority of the voters. If the lease
// changes, the promises of a majority under the former lease must have ended too (R4).
func NewRevision(ballot election.Term, drift float64, stable, changed *election.Roster) *Driver {
	revised := *stable
	revised.Settings, revised.Rights = changed.Settings, changed.Rights
	d := newDriver(ballot, drift, revised)
	d.waits = stable.Lease() != changed.Lease()
	return d
}

// InheritChange continues the change of the highest joint roster that voters reported (R3). won
// is the roster whose majority elected the driver. If neither roster has the mark, it was not yet
// accepted by majorities of both halves. If one has it, or if won is nil, it may have been (R11, R13).
func InheritChange(ballot election.Term, drift float64, joint, won *election.Roster) *Driver {
	d := newDriver(ballot, drift, *joint)
	d.inherited = joint.Committed || won == nil || won.Committed
	return d
}

func newDriver(ballot election.Term, drift float64, first election.Roster) *Driver {
	d := &Driver{Ballot: ballot, drift: drift, joint: first, refused: map[election.PeerID]bool{}, reported: map[election.PeerID]election.Term{}}
	d.propose(first, 0)
	return d
}

func (d *Driver) propose(r election.Roster, counter uint64) {
	r.Version = election.Version{Driver: d.Ballot, Counter: counter}
	d.proposal = &r
	d.accepted = map[election.PeerID]election.Instant{}
	d.words = map[election.PeerID]election.WordsHeld{}
}

// Proposal is the roster to propose now. Each proposal is a separate value.
func (d *Driver) Proposal() *election.Roster { return d.proposal }

// Accept counts an acceptance. The remaining time of the voter's promises counts from this arrival (R4).
func (d *Driver) Accept(now election.Instant, from election.PeerID, m election.RosterAccept) {
	if m.Driver != d.Ballot || m.Version != d.proposal.Version || !d.Asks(from) {
		return
	}
	d.reported[from] = m.Highest
	if d.TooFar(from) {
		return
	}
	until := now.Add(Outlast(m.Promise, d.drift))
	if known, ok := d.accepted[from]; ok {
		until = min(until, known)
	}
	d.accepted[from] = until
	if m.Words != election.NoWords {
		d.words[from] = max(d.words[from], m.Words)
	}
	if d.proposal.Committed {
		d.floor = max(d.floor, m.Highest)
	}
}

func (d *Driver) Asks(p election.PeerID) bool { return d != nil && d.joint.Has(p) }

// TooFar reports whether the voter's term is so far above the terms of all others that bids
// can't have raised it. A floor at such a term could use up all terms. So the voter's acceptance
// counts only after another voter has reported a term about as high.
func (d *Driver) TooFar(voter election.PeerID) bool {
	others := d.joint.Floor
	for id, t := range d.reported {
		if id != voter {
			others = max(others, t)
		}
	}
	return !d.reported[voter].Follows(others)
}

// CatchesUp reports whether the voters must catch up before the stable roster is proposed, because at least one
// has words. An acknowledged word is on at least one voter of each majority of the former voters.
func (d *Driver) CatchesUp() bool { return d.Marks() && len(d.words) > 0 }

// Lacks reports whether the voter has accepted, but has not caught up.
func (d *Driver) Lacks(voter election.PeerID) bool {
	return d.CatchesUp() && d.words[voter] != election.CaughtUp
}

// CaughtUp reports whether majorities of both halves have caught up, or need not catch up (W9).
func (d *Driver) CaughtUp() bool {
	return !d.CatchesUp() || Accepted(d.proposal, func(id election.PeerID) bool { return d.words[id] == election.CaughtUp })
}

// Recount forgets the acceptances: after a suspend, it is not known when the reported promises end.
func (d *Driver) Recount() { clear(d.accepted) }

// Refuse records that a voter has granted a higher ballot (R1).
func (d *Driver) Refuse(from election.PeerID, m election.RosterRefuse) {
	if m.Driver == d.Ballot && m.Granted > d.Ballot && d.Asks(from) {
		d.refused[from] = true
	}
}

// Hopeless reports whether this ballot can't commit anything any more, because too many voters
// have granted a higher ballot.
func (d *Driver) Hopeless() bool {
	return !confirms(d.proposal.Voters, func(v election.PeerID) bool { return !d.refused[v] })
}

func (d *Driver) HasAccepted(voter election.PeerID) bool {
	_, ok := d.accepted[voter]
	return ok
}

func (d *Driver) Agreed() bool { return Accepted(d.proposal, d.HasAccepted) }

// Done reports whether the change has ended, with a committed stable roster.
func (d *Driver) Done() bool { return !d.proposal.Joint() && d.Agreed() && (!d.waits || d.waited) }

func (d *Driver) Marks() bool { return d.proposal.Committed }

func (d *Driver) Back() bool { return d.back }

// GoBack makes the change go back. It returns false if the new voters have been proposed already (R12).
func (d *Driver) GoBack() bool {
	d.back = d.back || d.proposal.Joint()
	return d.back
}

// MayAlwaysGoBack reports whether this ballot can go back without the new voters (R12). A later ballot may
// not be able to. So the driver must then keep this ballot while the new voters are missing.
func (d *Driver) MayAlwaysGoBack() bool {
	return !d.inherited && (d.Marks() || d.back)
}

// WaitsUntil is when the earlier promises of a majority of the former voters have ended; Never until a majority
// has accepted the mark or the revision. If the mark is inherited, the new voters may have granted terms alone
// meanwhile, so the promises of a majority of them must have ended too (R13).
func (d *Driver) WaitsUntil() election.Instant {
	until := d.promisesEnd(d.joint.Voters)
	if d.inherited {
		until = max(until, d.promisesEnd(d.joint.Next))
	}
	return until
}

func (d *Driver) promisesEnd(half []election.Voter) election.Instant {
	var ends []election.Instant
	for _, v := range half {
		if until, ok := d.accepted[v.Peer]; ok {
			ends = append(ends, until)
		}
	}
	need := Majority(len(half))
	if !d.Marks() && !d.waits || len(ends) < need {
		return election.Never
	}
	slices.Sort(ends)
	return ends[need-1]
}

// Advance makes the next proposal if one is due, and reports whether it has made one.
func (d *Driver) Advance(now election.Instant) bool {
	d.waited = d.waited || (d.Marks() || d.waits) && d.Agreed() && now >= d.WaitsUntil() && d.CaughtUp()
	next := d.joint
	switch {
	case !d.proposal.Joint():
		return false
	case d.back && (!d.inherited || d.waited):
		next.Next, next.Committed = nil, false
		if d.inherited {
			next.Floor = max(next.Floor, d.floor)
		}
	case d.waited:
		next.Voters, next.Next, next.Committed = next.Next, nil, false
		next.Floor = max(next.Floor, d.floor)
	case !d.Marks() && d.Agreed():
		next.Committed = true
	default:
		return false
	}
	d.propose(next, d.proposal.Version.Counter+1)
	return true
}
