package election

import "time"

// Lineage is what the lives of one agent share, as the record keeps it for the next one.
type Lineage struct {
	ID       LineageID
	Life     uint64 // of the newest life; the first is 1
	JoinedAt int64  // Unix nanoseconds, of the first life: the place in rank stays
	// Lease is the shortest that any of its lives had: no term on record was asked for with a
	// shorter one (K4e).
	Lease time.Duration
}

// Past is what the former life left on record: the next one takes all of it over before it
// reads its first message (K4).
type Past struct {
	Lineage
	LifeRecord
}

// LifeRecord is what an elector puts on record in one step, or all that it has on record.
type LifeRecord struct {
	// Both are on record before a row goes.
	Retired  Term          // the highest term known in any election that is forgotten
	Spent    Term          // the highest term asked for in any election that is forgotten
	Shortest time.Duration // lease in use in this life (K4e); 0: the one that it began with
	Rows     []Authority   // sorted by election; of a step: those that have changed
}

// Authority is what this agent holds in one election: a row of the record.
type Authority struct {
	Election Name    `cbor:"1,keyasint"`
	Highest  Term    `cbor:"2,keyasint,omitempty"` // no life asks for it again, nor for a lower one; 0: the election is forgotten, its row goes
	Term     Term    `cbor:"3,keyasint,omitempty"` // that it leads, or has stepped down from and not released; 0: none
	Until    Instant `cbor:"4,keyasint,omitempty"` // the latest deadline that anybody was sent under Term; Never: without quorum
	Priority int     `cbor:"5,keyasint,omitempty"` // of its candidacy; 0: not a candidate
	Ending   Ending  `cbor:"6,keyasint,omitzero"`  // zero: it leads
}

// Ending is how a leadership ends: this agent has stepped down and not released the term yet.
type Ending struct {
	Reason Reason  `cbor:"1,keyasint"`           // empty: it does not end
	To     PeerID  `cbor:"2,keyasint,omitempty"` // the target of a transfer
	StopBy Instant `cbor:"3,keyasint,omitempty"`
}
