package record

import "github.com/doyen-election/doyen/election"

// Actors are the program and the companion that act under this agent's term in one election.
type Actors struct {
	Program Program `cbor:"1,keyasint,omitzero"` // zero: no program acts
	// Companion is the companion that was last sent a term of the election; zero: none was. Sockets and priority are
	// not recorded for it: the end of a companion proves nothing, and a companion is not a candidate.
	Companion Program `cbor:"2,keyasint,omitzero"`
}

// MaxSockets is how many sockets of one program can be recorded.
const MaxSockets = 6

// Program is the program that was notified that it leads, or is just about to be notified.
type Program struct {
	Campaign string             `cbor:"1,keyasint,omitempty"` // the campaign's ID
	UID      uint32             `cbor:"2,keyasint,omitempty"`
	PID      int32              `cbor:"3,keyasint,omitempty"`
	Started  uint64             `cbor:"4,keyasint,omitempty"` // when the process started, as /proc/PID/stat shows it; 0: not known
	Space    uint64             `cbor:"5,keyasint,omitempty"` // a number for the namespaces in which PID and Sockets are valid
	Sockets  [MaxSockets]uint64 `cbor:"6,keyasint"`           // inodes of the program's connections, then zeros; only zeros: its end can't be proven
	More     bool               `cbor:"7,keyasint,omitempty"` // the program has more connections than Sockets can hold, so its end can't be proven
	Priority int                `cbor:"8,keyasint,omitempty"`
	Told     election.Term      `cbor:"9,keyasint,omitempty"`  // the newest term of which it was notified
	Stopped  election.Term      `cbor:"10,keyasint,omitempty"` // the newest term under which it certainly no longer acts, by receipt, proof or deadline
}
