package quorum

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Driver is one ballot of the roster election as its leader spends it: one
// change of the voters, forward or back (R3, R4, R9 to R13). It is a plain value
// that is given acceptances and instants; its rosters are the proposals.
//
// Invariants: no two proposals of one ballot have one version; the stable roster
// of the new voters is proposed only after the marked one was accepted by
// majorities of both halves and what a majority of the former voters had promised
// before that has ended, and of the new ones too if the mark is inherited; once it
// is proposed there is no way back.
type Driver struct {
	Ballot   election.Term
	drift    float64
	proposal *election.Roster
	joint    election.Roster // of the change; never changed
	// inherited says that the mark may be another ballot's: what was agreed on
	// then may be decided already, so the way back leads through this ballot's own
	// commit and wait (R13).
	inherited bool
	back      bool
	accepted  map[election.PeerID]election.Instant // voter → when the promises it told of have ended everywhere
	refused   map[election.PeerID]bool             // voters that have granted a higher ballot
	told      map[election.PeerID]election.Term    // the highest term each voter told last, believed or not
	floor     election.Term                        // the highest term in the acceptances of the marked roster (R4 ii)
	waited    bool                                 // the marked roster was accepted, and waited for
}

// NewDriver begins a change of the stable roster's voters to next, in that
// ballot: an unmarked joint roster is proposed (R9).
func NewDriver(ballot election.Term, drift float64, stable *election.Roster, next []election.Voter) *Driver {
	d := &Driver{Ballot: ballot, drift: drift, joint: *stable}
	d.joint.Next, d.joint.Committed = next, false
	d.propose(d.joint, 0)
	return d
}

// InheritChange goes on with a joint roster that another ballot left behind, the
// highest the driver was told: it is proposed anew with the same mark (R3). won
// is the roster whose majority elected the driver: unless that was an unmarked
// one, a mark may have been agreed on (R11, R13).
func InheritChange(ballot election.Term, drift float64, joint, won *election.Roster) *Driver {
	d := &Driver{Ballot: ballot, drift: drift, joint: *joint,
		inherited: joint.Committed || won == nil || won.Committed}
	d.propose(d.joint, 0)
	return d
}

func (d *Driver) propose(r election.Roster, counter uint64) {
	r.Version = election.Version{Driver: d.Ballot, Counter: counter}
	d.proposal = &r
	d.accepted = map[election.PeerID]election.Instant{}
}

// Proposal is the roster to propose now. Each is a new value.
func (d *Driver) Proposal() *election.Roster { return d.proposal }

// Accept counts an acceptance that arrives now. What a voter had promised before
// it accepted has ended, on any clock, that long after (R4); an instant that is
// known already is replaced only by another arrival's, and only if that is sooner.
// Nobody counts but the voters of the two halves, and none that is TooFar.
func (d *Driver) Accept(now election.Instant, from election.PeerID, m election.RosterAccept) {
	if m.Driver != d.Ballot || m.Version != d.proposal.Version || !d.Asks(from) {
		return
	}
	if d.told == nil {
		d.told = map[election.PeerID]election.Term{}
	}
	d.told[from] = m.Highest
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

// Asks reports whether the peer is a voter of either half: its answers matter.
func (d *Driver) Asks(p election.PeerID) bool { return d != nil && d.joint.Has(p) }

// TooFar reports whether the term that the voter told is farther above those of
// all other voters than attempts can have raised it. A floor from it could use the
// terms up for good, so the acceptance does not count until another voter tells of
// a term that it may follow. The voter is asked again until then.
func (d *Driver) TooFar(voter election.PeerID) bool {
	others := d.joint.Floor
	for id, t := range d.told {
		if id != voter {
			others = max(others, t)
		}
	}
	return !d.told[voter].Follows(others)
}

// Recount forgets who accepted: until when to wait for what they had promised was
// counted on a clock that can't be relied on any more. They are asked again, and
// tell what they promise then.
func (d *Driver) Recount() { clear(d.accepted) }

// Refuse takes note that a voter has granted a higher ballot: it never accepts
// anything of this one again (R1).
func (d *Driver) Refuse(from election.PeerID, m election.RosterRefuse) {
	if m.Driver != d.Ballot || m.Granted <= d.Ballot || !d.Asks(from) {
		return
	}
	if d.refused == nil {
		d.refused = map[election.PeerID]bool{}
	}
	d.refused[from] = true
}

// Hopeless reports whether so many voters have granted a higher ballot that what
// this one proposes can't be committed any more: of the former ones, or of those
// of the outcome.
func (d *Driver) Hopeless() bool {
	return !confirms(d.proposal.Voters, func(v election.PeerID) bool { return !d.refused[v] })
}

// HasAccepted reports whether the voter accepted what is proposed now.
func (d *Driver) HasAccepted(voter election.PeerID) bool {
	_, ok := d.accepted[voter]
	return ok
}

// Agreed reports whether what is proposed now is committed.
func (d *Driver) Agreed() bool { return Accepted(d.proposal, d.HasAccepted) }

// Done reports whether a stable roster is committed: the change has ended.
func (d *Driver) Done() bool { return !d.proposal.Joint() && d.Agreed() }

// Marks reports whether the marked joint roster is what is proposed.
func (d *Driver) Marks() bool { return d.proposal.Committed }

// Back reports whether the way back was taken or asked for.
func (d *Driver) Back() bool { return d.back }

// GoBack asks for the way back to the former voters. It returns false if that is
// too late: their successors are proposed already (R12).
func (d *Driver) GoBack() bool {
	d.back = d.back || d.proposal.Joint()
	return d.back
}

// MayAlwaysGoBack reports whether this ballot alone can lead back from its mark
// without the new voters (R12): it must not be given up as long as they may be
// missing.
func (d *Driver) MayAlwaysGoBack() bool {
	return !d.inherited && (d.Marks() || d.back)
}

// WaitsUntil is when a majority of the former voters' old promises have ended;
// Never if that many did not accept the marked roster yet. If the mark is
// inherited, the new voters may have decided alone since, by a roster of the
// former ballot that some of them took over (R2): then theirs count too (R13).
func (d *Driver) WaitsUntil() election.Instant {
	until := d.promisesEnd(d.joint.Voters)
	if d.inherited {
		until = max(until, d.promisesEnd(d.joint.Next))
	}
	return until
}

// promisesEnd is when the old promises of a majority of that half have ended.
func (d *Driver) promisesEnd(half []election.Voter) election.Instant {
	var ends []election.Instant
	for _, v := range half {
		if until, ok := d.accepted[v.Peer]; ok {
			ends = append(ends, until)
		}
	}
	need := Majority(len(half))
	if !d.Marks() || len(ends) < need {
		return election.Never
	}
	slices.Sort(ends)
	return ends[need-1]
}

// Advance proposes what comes next, if something does, and reports whether it
// did.
func (d *Driver) Advance(now election.Instant) bool {
	d.waited = d.waited || d.Marks() && d.Agreed() && now >= d.WaitsUntil()
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
