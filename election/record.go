package election

import "time"

// Lineage is what the lives of one agent share. The record keeps it for the next life.
type Lineage struct {
	ID       LineageID
	Life     uint64 // of the newest life; the first is 1
	JoinedAt int64  // Unix nanoseconds, of the start of the first life: a restart does not change the rank
	// Lease is the shortest lease of all these lives: no life has asked for a term with a shorter
	// lease (K4e).
	Lease time.Duration
}

// Past is what the former life left on record. The next life takes all of it over before it
// reads its first message (K4).
type Past struct {
	Lineage
	LifeRecord
}

// LifeRecord is what an elector puts on record in one step, or all that it has on record so far.
type LifeRecord struct {
	// Retired and Spent are put on record before the row of a forgotten election is removed.
	Retired  Term          // the highest term known in any forgotten election
	Spent    Term          // the highest term that this agent asked for in any forgotten election
	Shortest time.Duration // the shortest lease used in this life (K4e); 0: the lease with which it started
	Rows     []Authority   // sorted by election; of one step, only the rows that changed
}

// Authority is what this agent has on record about one election: one row.
type Authority struct {
	Election Name    `cbor:"1,keyasint"`
	Highest  Term    `cbor:"2,keyasint,omitempty"` // later lives ask only for higher terms, but see Low; 0: the election is forgotten, its row removed
	Term     Term    `cbor:"3,keyasint,omitempty"` // the term that it leads, or has stepped down from but not released; 0: none
	Until    Instant `cbor:"4,keyasint,omitempty"` // the latest deadline that was sent to any program under Term; Never: it leads without quorum
	Priority int     `cbor:"5,keyasint,omitempty"` // of this agent's candidacy; 0: it is not a candidate
	Ending   Ending  `cbor:"6,keyasint,omitzero"`  // zero: it has not stepped down
	// Low and Far are set only if this agent followed a made-up term upwards, and then went back (H1). It has then
	// asked for terms up to Low, and for terms from Far to Highest. It next asks for terms between Low and Far.
	Low Term `cbor:"7,keyasint,omitempty"`
	Far Term `cbor:"8,keyasint,omitempty"`
}

// Ending describes a leadership from which this agent has stepped down, but whose term it has not released yet.
type Ending struct {
	Reason Reason  `cbor:"1,keyasint"`           // empty: the leadership does not end
	To     PeerID  `cbor:"2,keyasint,omitempty"` // the target of a transfer
	StopBy Instant `cbor:"3,keyasint,omitempty"`
}
