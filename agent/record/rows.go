package record

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// row is the place of one election in the record.
type row struct {
	name      election.Name
	nameSum   uint64
	slot      int
	authority value
	actors    value
	last      election.Authority // what is on record
	acting    Actors
}

// newRow returns the row of that number, as one that nobody has read or written yet.
func newRow(slot int, seed uint64) row {
	at := wordRows + slot*rowWords
	return row{
		slot:      slot,
		authority: newValue(at+rowAuthority, authorityRoom, seed),
		actors:    newValue(at+rowActors, actorsRoom, seed),
	}
}

// call gives a free row a name. The row counts once its authority is stored.
func (r *row) call(m memory, name election.Name) {
	var content [textWords]uint64
	putText(content[:], string(name))
	for i, w := range content {
		m[wordRows+r.slot*rowWords+i] = w
	}
	r.name, r.nameSum = name, mixAll(sumBasis, content[:])
}

// load reads both halves of the row, and reports whether they are undamaged.
func (r *row) load(m memory) bool {
	var name [textWords]uint64
	for i := range name {
		name[i] = m[wordRows+r.slot*rowWords+i]
	}
	called, _ := text(name[:])
	r.name, r.nameSum = election.Name(called), mixAll(sumBasis, name[:])
	content, whole := r.authority.load(m, make([]uint64, authorityRoom))
	if !whole {
		return false
	}
	if r.last, whole = getAuthority(content, r.name, r.nameSum); !whole {
		return false
	}
	if content, whole = r.actors.load(m, make([]uint64, actorsRoom)); !whole {
		return false
	}
	r.acting, whole = getActors(content)
	return whole
}

// storeAuthority is fast for a lease that is prolonged: a heartbeat prolongs a thousand.
func (r *row) storeAuthority(m memory, a *election.Authority) {
	if l := &r.last; a.Highest == l.Highest && a.Term == l.Term && a.Priority == l.Priority && !ends(a) && !ends(l) && a.Highest != 0 {
		r.authority.store(m, []uint64{uint64(a.Highest), r.nameSum, uint64(a.Term), uint64(a.Until), uint64(uint32(a.Priority))})
		l.Until = a.Until
		return
	}
	var room [authorityRoom]uint64
	r.authority.store(m, putAuthority(&room, r.nameSum, a))
	r.last = *a
}

func (r *row) storeActors(m memory, a *Actors) {
	var room [actorsRoom]uint64
	r.actors.store(m, putActors(&room, a))
	r.acting = *a
}

// ends reports whether the leadership is being given up.
func ends(a *election.Authority) bool { return a.Ending.Reason != "" }

// reasons are those for which a leadership of this agent can end, in the order of their
// numbers on record.
var reasons = []election.Reason{
	"", election.ReasonElected, election.ReasonLeaseExpired, election.ReasonResigned, election.ReasonTransferred,
	election.ReasonPreempted, election.ReasonDraining, election.ReasonShutdown, election.ReasonDisk, election.ReasonWithdrawn,
	election.ReasonSuperseded, election.ReasonReleased, election.ReasonSuspended, election.ReasonBarred, election.ReasonNotAllowed,
}

// How many words an authority has: in a free row, in one that leads or has led, in one that ends.
const (
	freeWords = 1
	heldWords = 5
)

// putAuthority puts an authority into words.
func putAuthority(to *[authorityRoom]uint64, name uint64, a *election.Authority) []uint64 {
	to[0], to[1], to[2], to[3], to[4] = uint64(a.Highest), name, uint64(a.Term), uint64(a.Until), uint64(uint32(a.Priority))
	switch {
	case a.Highest == 0:
		return to[:freeWords]
	case !ends(a):
		return to[:heldWords]
	}
	why := slices.Index(reasons, a.Ending.Reason)
	if why <= 0 {
		why = slices.Index(reasons, election.ReasonResigned) // the leadership ends, whatever the reason
	}
	to[4] |= uint64(why) << 32
	to[5] = uint64(a.Ending.StopBy)
	putText(to[6:], string(a.Ending.To))
	return to[:]
}

// getAuthority reads an undamaged authority, and reports whether its content is possible.
func getAuthority(from []uint64, name election.Name, nameSum uint64) (a election.Authority, ok bool) {
	if len(from) == freeWords {
		return a, from[0] == 0
	}
	if len(from) != heldWords && len(from) != authorityRoom || from[1] != nameSum {
		return a, false
	}
	a = election.Authority{
		Election: name, Highest: election.Term(from[0]), Term: election.Term(from[2]), Until: election.Instant(from[3]),
		Priority: int(uint32(from[4])),
	}
	ok = a.Highest > 0 && a.Highest <= election.MaxTerm && a.Term <= a.Highest && a.Until >= 0 && a.Priority <= election.MaxPriority &&
		(election.ValidName(string(name)) || name == election.RosterElection)
	why := from[4] >> 32
	if len(from) == heldWords {
		return a, ok && why == 0
	}
	to, whole := text(from[6:])
	if !whole || why == 0 || why >= uint64(len(reasons)) {
		return a, false
	}
	a.Ending = election.Ending{Reason: reasons[why], To: election.PeerID(to), StopBy: election.Instant(from[5])}
	return a, ok
}
