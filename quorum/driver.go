package quorum

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Driver is one change of the voters, forward or back, in one ballot. A ballot is a term of
// the roster election (R3, R4, R9 to R13).
//
// Invariant: each proposal of a ballot has another version. The stable roster of the new
// voters is proposed once majorities of both halves have accepted the mark, and the earlier
// promises of a majority of the former voters have ended. If the mark is inherited, those of
// a majority of the new voters must have ended too. From then on there is no way back.
type Driver struct {
	Ballot    election.Term
	drift     float64
	proposal  *election.Roster
	joint     election.Roster // of the change; never changed
	inherited bool            // an earlier ballot may have made the mark, and may have decided (R13)
	back      bool
	accepted  map[election.PeerID]election.Instant // voter → when the promises that it reported have ended on any clock
	refused   map[election.PeerID]bool             // voters that have granted a higher ballot
	reported  map[election.PeerID]election.Term    // the highest term that each voter reported last, believed or not
	floor     election.Term                        // the highest term in the acceptances of the marked roster (R4 ii)
	waited    bool                                 // the marked roster was accepted, and WaitsUntil has passed
	waits     bool                                 // the lease changes, and the voters do not
}

// NewDriver starts a change of a stable roster, by an unmarked joint one (R9).
func NewDriver(ballot election.Term, drift float64, stable *election.Roster, next []election.Voter) *Driver {
	joint := *stable
	joint.Next, joint.Committed = next, false
	return newDriver(ballot, drift, joint)
}

// NewRevision starts a change that leaves the voters alone (R14): the changed roster is proposed
// once, to a majority of the voters, with their floor. If the lease changes, the change ends
// only when what a majority has promised for the former one has ended (R4).
func NewRevision(ballot election.Term, drift float64, stable, changed *election.Roster) *Driver {
	revised := *stable
	revised.Settings, revised.Rights = changed.Settings, changed.Rights
	d := newDriver(ballot, drift, revised)
	d.waits = stable.Lease() != changed.Lease()
	return d
}

// InheritChange continues the change of the highest joint roster that was reported (R3). won
// is the roster whose majority elected the driver. Unless won is unmarked, a mark may have
// been agreed on (R11, R13).
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
}

// Proposal is the roster to propose now. Each is a new value.
func (d *Driver) Proposal() *election.Roster { return d.proposal }

// Accept counts an acceptance. The promises that it reports run from its arrival (R4).
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
	if d.proposal.Committed {
		d.floor = max(d.floor, m.Highest)
	}
}

func (d *Driver) Asks(p election.PeerID) bool { return d != nil && d.joint.Has(p) }

// TooFar reports whether the voter's term is so far above those of all others that bids can't
// have raised it: a floor at that term could use up all terms. The voter's acceptance counts
// only once another voter reports a term as high.
func (d *Driver) TooFar(voter election.PeerID) bool {
	others := d.joint.Floor
	for id, t := range d.reported {
		if id != voter {
			others = max(others, t)
		}
	}
	return !d.reported[voter].Follows(others)
}

// Recount forgets the acceptances: after a suspend it is uncertain when the promises end.
func (d *Driver) Recount() { clear(d.accepted) }

// Refuse records that a voter has granted a higher ballot (R1).
func (d *Driver) Refuse(from election.PeerID, m election.RosterRefuse) {
	if m.Driver != d.Ballot || m.Granted <= d.Ballot || !d.Asks(from) {
		return
	}
	d.refused[from] = true
}

// Hopeless reports whether nothing of this ballot can be committed any more, because too many
// voters have granted a higher one.
func (d *Driver) Hopeless() bool {
	return !confirms(d.proposal.Voters, func(v election.PeerID) bool { return !d.refused[v] })
}

func (d *Driver) HasAccepted(voter election.PeerID) bool {
	_, ok := d.accepted[voter]
	return ok
}

func (d *Driver) Agreed() bool { return Accepted(d.proposal, d.HasAccepted) }

// Done reports whether the change has ended: a stable roster is committed.
func (d *Driver) Done() bool { return !d.proposal.Joint() && d.Agreed() && (!d.waits || d.waited) }

func (d *Driver) Marks() bool { return d.proposal.Committed }

func (d *Driver) Back() bool { return d.back }

// GoBack asks for the way back; false once the new voters are proposed (R12).
func (d *Driver) GoBack() bool {
	d.back = d.back || d.proposal.Joint()
	return d.back
}

// MayAlwaysGoBack reports whether this ballot, and only this one, can go back without the new
// voters (R12). Then it must not be given up while they are missing.
func (d *Driver) MayAlwaysGoBack() bool {
	return !d.inherited && (d.Marks() || d.back)
}

// WaitsUntil is when the earlier promises of a majority of the former voters end; Never until
// a majority has accepted the mark. If the mark is inherited, the new voters may have decided
// alone since, so their promises count too (R13).
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

// Advance makes the next proposal if one is due, and reports whether it did.
func (d *Driver) Advance(now election.Instant) bool {
	d.waited = d.waited || (d.Marks() || d.waits) && d.Agreed() && now >= d.WaitsUntil()
	next := d.joint
	counter := d.proposal.Version.Counter + 1
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
	d.propose(next, counter)
	return true
}
