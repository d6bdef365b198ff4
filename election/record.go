package election

import "time"

// Lineage is what the lives of one agent share, as the record keeps it for the next one.
type Lineage struct {
	ID       LineageID
	Life     uint64        // of the newest life; the first is 1
	JoinedAt int64         // Unix nanoseconds, of the first life: the place in rank stays
	Lease    time.Duration // that its terms were asked for with (K4e)
}

// Past is what the former life left on record: the next one takes all of it over before it
// reads its first message (K4).
type Past struct {
	Lineage
	LifeRecord
}

// LifeRecord is what an elector puts on record in one step, or all that it has on record: in a
// step, Rows are those that have changed, sorted by election.
type LifeRecord struct {
	Retired Term // the highest term known in any election that is forgotten
	Spent   Term // the highest term asked for in any election that is forgotten
	Rows    []Authority
}

// Authority is what this agent holds in one election: half a row of the record.
type Authority struct {
	Election Name
	Highest  Term    // no life asks for it again, nor for a lower one; 0: the election is forgotten, its row goes
	Term     Term    // that it leads, or has stepped down from and not released; 0: none
	Until    Instant // the latest deadline that anybody was sent under Term; Never: without quorum
	Priority int     // of its candidacy; 0: it is no candidate
	Ending   Ending  // zero: it leads
}

// Ending is how a leadership ends: this agent has stepped down and not released the term yet.
type Ending struct {
	Reason Reason // empty: it does not end
	To     PeerID // the target of a transfer
	StopBy Instant
}
