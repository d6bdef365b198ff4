package record

import "github.com/doyen-election/doyen/election"

// Actors is what acts under this agent's term in one election.
type Actors struct {
	Program Program `cbor:"1,keyasint,omitzero"` // zero: none
	// Companion is what was sent a term last, to act beside the program; zero: none. Its sockets and
	// priority are not recorded: its end proves nothing, and it is not a candidate.
	Companion Program `cbor:"2,keyasint,omitzero"`
}

// MaxSockets is how many sockets of one program are recorded.
const MaxSockets = 6

// Program is the program that was notified that it leads, or is about to be.
type Program struct {
	Campaign string             `cbor:"1,keyasint,omitempty"` // the campaign's ID
	UID      uint32             `cbor:"2,keyasint,omitempty"`
	PID      int32              `cbor:"3,keyasint,omitempty"`
	Started  uint64             `cbor:"4,keyasint,omitempty"` // when the process started, as /proc/PID/stat has it; 0: not known
	Space    uint64             `cbor:"5,keyasint,omitempty"` // the namespaces in which PID and Sockets mean something
	Sockets  [MaxSockets]uint64 `cbor:"6,keyasint"`           // inodes of its connections, then zeros; none: its end can't be proven
	More     bool               `cbor:"7,keyasint,omitempty"` // it has more connections than fit: its end can't be proven
	Priority int                `cbor:"8,keyasint,omitempty"`
	Told     election.Term      `cbor:"9,keyasint,omitempty"`  // the newest term of which it was notified
	Stopped  election.Term      `cbor:"10,keyasint,omitempty"` // the newest term under which it is known to act no more: by receipt, proof or deadline
}
