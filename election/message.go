package election

import (
	"reflect"
	"time"
)

// Message is what one agent sends to another: a value of one of the types that package codec lists.
type Message any

// Kind returns the message's stable name, for metrics and logs: that of its type.
func Kind(m Message) string {
	if m == nil {
		return "unknown"
	}
	return reflect.TypeOf(m).Name()
}

const MaxElections = 1024 // that one message may be about

// MaxDetail is how many bytes the Detail of a GenesisRefuse may have.
const MaxDetail = 1024

// SendID numbers the sends of one process run of an agent: each request has a number, also a
// repeated one, and so has each heartbeat.
type SendID uint64

// Selection: Bully (Garcia-Molina 1982).
type (
	// BullyElection asks a better-ranked candidate whether it is alive.
	BullyElection struct {
		Election Name   `cbor:"1,keyasint"`
		Round    uint64 `cbor:"2,keyasint"`
		Rank     Rank   `cbor:"3,keyasint"` // the sender's
	}
	// BullyAnswer reports that the sender is alive and ranks higher. A nominee also sends
	// it unasked, with round 0.
	BullyAnswer struct {
		Election Name   `cbor:"1,keyasint"`
		Round    uint64 `cbor:"2,keyasint"` // the round answered
	}
	// BullyDecline reports that the sender can't lead, or ranks lower: nobody should wait.
	BullyDecline struct {
		Election Name   `cbor:"1,keyasint"`
		Round    uint64 `cbor:"2,keyasint"`
	}
	// BullyCoordinator announces a leader.
	BullyCoordinator struct {
		Election Name   `cbor:"1,keyasint"`
		Term     Term   `cbor:"2,keyasint"`
		Leader   Holder `cbor:"3,keyasint"`
	}
)

// Selection is a message of Bully or Ring.
type Selection interface {
	Message
	Selects() (e Name, algorithm string)
}

func (m BullyElection) Selects() (Name, string)    { return m.Election, "bully" }
func (m BullyAnswer) Selects() (Name, string)      { return m.Election, "bully" }
func (m BullyDecline) Selects() (Name, string)     { return m.Election, "bully" }
func (m BullyCoordinator) Selects() (Name, string) { return m.Election, "bully" }
func (m RingElection) Selects() (Name, string)     { return m.Election, "ring" }
func (m RingAck) Selects() (Name, string)          { return m.Election, "ring" }
func (m RingElected) Selects() (Name, string)      { return m.Election, "ring" }

// RoundID identifies a token of Ring.
type RoundID struct {
	Origin PeerID `cbor:"1,keyasint"`
	Number uint64 `cbor:"2,keyasint"`
}

// Selection: Ring (Chang and Roberts 1979).
type (
	// RingElection is the token, with the best candidate that it has met.
	RingElection struct {
		Election Name    `cbor:"1,keyasint"`
		Round    RoundID `cbor:"2,keyasint"`
		Best     Rank    `cbor:"3,keyasint"`
	}
	// RingAck tells the previous hop that the token arrived.
	RingAck struct {
		Election Name    `cbor:"1,keyasint"`
		Round    RoundID `cbor:"2,keyasint"`
		Best     PeerID  `cbor:"3,keyasint"`
	}
	// RingElected announces a leader.
	RingElected struct {
		Election Name   `cbor:"1,keyasint"`
		Term     Term   `cbor:"2,keyasint"`
		Leader   Holder `cbor:"3,keyasint"`
	}
)

// Authority: votes, leases, heartbeats.
type (
	// VoteRequest asks a voter for a grant. It carries the requester's roster, so that a
	// voter with an older one catches up.
	VoteRequest struct {
		Election Name          `cbor:"1,keyasint"`
		Term     Term          `cbor:"2,keyasint"`
		Holder   Holder        `cbor:"3,keyasint"`
		Lease    time.Duration `cbor:"4,keyasint"`
		Send     SendID        `cbor:"5,keyasint"`
		Rank     Rank          `cbor:"6,keyasint"`
		Roster   Roster        `cbor:"7,keyasint"`
	}
	// VoteGrant is a durable promise. It answers one send of a request.
	VoteGrant struct {
		Election Name    `cbor:"1,keyasint"`
		Term     Term    `cbor:"2,keyasint"`
		Holder   Holder  `cbor:"3,keyasint"`
		Send     SendID  `cbor:"4,keyasint"`
		Version  Version `cbor:"5,keyasint"`
		Stamp    Instant `cbor:"6,keyasint"` // of the voter's clock, to be echoed
	}
	// VoteRefusal answers a request that was not granted.
	VoteRefusal struct {
		Election  Name          `cbor:"1,keyasint"`
		Term      Term          `cbor:"2,keyasint"` // the term refused
		Holder    Holder        `cbor:"3,keyasint"`
		Granted   Term          `cbor:"5,keyasint"` // the term on record
		GrantedTo Holder        `cbor:"6,keyasint"`
		Remaining time.Duration `cbor:"7,keyasint,omitempty"` // of the promise to GrantedTo; 0: it has expired
		Reason    RefusalReason `cbor:"8,keyasint"`
		Roster    *Roster       `cbor:"9,keyasint,omitempty"` // if newer than the requester's
	}
	// Release gives a term back before its lease ends.
	Release struct {
		Election  Name          `cbor:"1,keyasint"`
		Term      Term          `cbor:"2,keyasint"`
		Holder    Holder        `cbor:"3,keyasint"`
		Target    PeerID        `cbor:"4,keyasint,omitempty"` // of a transfer
		StandDown time.Duration `cbor:"5,keyasint,omitempty"` // for how long the sender is not a candidate
		Leaving   bool          `cbor:"6,keyasint,omitempty"` // the sender's agent stops
	}
	// Heartbeat claims all elections that its sender leads, and asks voters to renew its leases.
	Heartbeat struct {
		Lineage  LineageID  `cbor:"1,keyasint"`
		Send     SendID     `cbor:"2,keyasint"`
		Version  Version    `cbor:"3,keyasint"`
		Echo     Instant    `cbor:"4,keyasint,omitempty"` // the newest stamp of the receiver
		Claims   []Claim    `cbor:"5,keyasint"`           // sorted by election
		Progress []Progress `cbor:"6,keyasint,omitempty"` // level 2: of the sender and of other voters, where it is new
	}
	// HeartbeatAck answers a heartbeat. If a voter sends it, at the heartbeat's version, it
	// renews each claim that is not among the nacks.
	HeartbeatAck struct {
		Lineage  LineageID  `cbor:"1,keyasint"` // of the heartbeat's sender
		Send     SendID     `cbor:"2,keyasint"`
		Version  Version    `cbor:"3,keyasint"`
		Stamp    Instant    `cbor:"4,keyasint"` // of the receiver's clock, to be echoed
		Nacks    []Nack     `cbor:"5,keyasint,omitempty"`
		Roster   *Roster    `cbor:"6,keyasint,omitempty"` // if newer than the sender's
		Progress []Progress `cbor:"7,keyasint,omitempty"` // level 2: the receiver's, if it is new
	}
)

// Progress is how far an agent's state has come.
type Progress struct {
	Peer    PeerID    `cbor:"1,keyasint"`
	Lineage LineageID `cbor:"2,keyasint"`
	Stamp   Instant   `cbor:"3,keyasint"` // of the agent's clock
	Writes  uint64    `cbor:"4,keyasint"` // of its state that are durable
}

// Claim is one leadership in a heartbeat.
type Claim struct {
	Election  Name          `cbor:"1,keyasint"`
	Term      Term          `cbor:"2,keyasint"`
	Remaining time.Duration `cbor:"3,keyasint"`          // of the lease, at the send
	Rank      Rank          `cbor:"4,keyasint,omitzero"` // only without quorum, where two leaders may meet
}

// Nack is a claim that the voter does not renew.
type Nack struct {
	Election Name `cbor:"1,keyasint"`
	Term     Term `cbor:"2,keyasint"` // the term on record
}

// RefusalReason is why a voter does not grant a term.
type RefusalReason uint8

const (
	RefusedStaleTerm   RefusalReason = iota + 1 // the term on record is as high or higher
	RefusedPromised                             // the election is promised to another holder
	RefusedVersion                              // the rosters differ
	RefusedFloor                                // the term is not above the roster's floor
	RefusedNotVoter                             // the receiver is not a voter
	RefusedUnavailable                          // the voter can't write its promises
	RefusedLease                                // the lease is longer than those in use
	RefusedLeap                                 // the term is too far above those known
	RefusedRight                                // the roster does not let the holder lead the election
)

// Knowledge.
type (
	// Inquiry asks for a Report.
	Inquiry struct {
		ID       uint64 `cbor:"1,keyasint"`
		Durable  bool   `cbor:"2,keyasint,omitempty"` // answer only after another write to the disk
		Election Name   `cbor:"3,keyasint,omitempty"` // about this one only; empty: about all
	}
	// Report is what the sender has on record. It is sent unasked, with ID 0, to every
	// peer that connects, and when a roster is committed.
	Report struct {
		ID       uint64    `cbor:"1,keyasint,omitempty"`
		Voter    bool      `cbor:"2,keyasint,omitempty"` // the sender is on its roster
		Roster   *Roster   `cbor:"3,keyasint,omitempty"`
		Records  []Record  `cbor:"4,keyasint,omitempty"` // sorted by election
		Stamp    Instant   `cbor:"5,keyasint,omitempty"` // of the sender's clock, to be echoed
		Election Name      `cbor:"6,keyasint,omitempty"` // about this one only; empty: about all
		Lineage  LineageID `cbor:"7,keyasint,omitempty"` // the sender's
		Writes   uint64    `cbor:"8,keyasint,omitempty"` // of its state that are durable
		Known    uint64    `cbor:"9,keyasint,omitempty"` // how many of the receiver's it remembers
	}
)

// In which elections an agent is a candidate.
type (
	// Candidacies are all candidacies of the sender.
	Candidacies struct {
		Lineage     LineageID   `cbor:"1,keyasint"`
		Serial      uint64      `cbor:"2,keyasint"`           // rises with each change in a process run
		Candidacies []Candidacy `cbor:"3,keyasint,omitempty"` // sorted by election
	}
	// CandidaciesAck reports that they arrived. Until then the sender repeats them.
	CandidaciesAck struct {
		Lineage LineageID `cbor:"1,keyasint"` // of the candidacies' sender
		Serial  uint64    `cbor:"2,keyasint"`
		By      LineageID `cbor:"3,keyasint"` // the receiver's: 0.2.0 takes no other number than its hello's
		// Run is the receiver's too: its next life does not know them. 0: the lineage's number.
		Run RunID `cbor:"4,keyasint,omitempty"`
	}
)

// Calls of the socket API from one agent to another. The elector takes no part in them.
type (
	// Call asks the receiver to carry out a call. Only what the session proves is trusted: the
	// sending agent. The caller is for the log.
	Call struct {
		ID     uint64 `cbor:"1,keyasint"`
		Method string `cbor:"2,keyasint"`
		Path   string `cbor:"3,keyasint"`
		Body   []byte `cbor:"4,keyasint,omitempty"`
		Caller string `cbor:"5,keyasint,omitempty"` // in words: user and program
	}
	// CallAnswer answers a Call, with a status of HTTP.
	CallAnswer struct {
		ID     uint64 `cbor:"1,keyasint"`
		Status uint64 `cbor:"2,keyasint"`
		Body   []byte `cbor:"3,keyasint,omitempty"`
	}
)

// Bounds of a Call, in bytes.
const (
	MaxCallBody = 64 << 10
	MaxCallText = 256 // of Path and Caller
)

// Record is one grant on record at a voter, with what is left of its promise.
type Record struct {
	Election  Name          `cbor:"1,keyasint"`
	Term      Term          `cbor:"2,keyasint"`
	Holder    Holder        `cbor:"3,keyasint"`
	Remaining time.Duration `cbor:"4,keyasint,omitempty"` // of the promise; 0: it has expired
}

// The roster: genesis and changes.
type (
	GenesisPropose struct {
		Genesis Genesis `cbor:"1,keyasint"`
	}
	// GenesisAccept reports that the proposal is durable at the sender, as pending.
	GenesisAccept struct {
		Cluster string `cbor:"1,keyasint"`
		Attempt uint64 `cbor:"2,keyasint"`
	}
	GenesisRefuse struct {
		Cluster string    `cbor:"1,keyasint"`
		Attempt uint64    `cbor:"2,keyasint"`
		Reason  Objection `cbor:"3,keyasint"`
		Detail  string    `cbor:"4,keyasint,omitempty"` // depends on the reason
	}
	// RosterPropose asks a voter to accept a new roster. The sender led the roster
	// election in term Driver.
	RosterPropose struct {
		Driver Term   `cbor:"1,keyasint"`
		Holder Holder `cbor:"2,keyasint"`
		Roster Roster `cbor:"3,keyasint"`
	}
	// RosterAccept reports that the proposed version is durable at the sender.
	RosterAccept struct {
		Driver  Term    `cbor:"1,keyasint"`
		Version Version `cbor:"2,keyasint"`
		Highest Term    `cbor:"3,keyasint"` // the highest that the sender knows, in any election
		// Promise is how long the longest promise of the sender still runs, in any
		// election. Promises of its earlier process runs count as well (R4).
		Promise time.Duration `cbor:"4,keyasint,omitempty"`
	}
	// RosterRefuse reports that the sender does not accept, and which roster it has.
	RosterRefuse struct {
		Driver  Term    `cbor:"1,keyasint"`
		Version Version `cbor:"2,keyasint"`
		Granted Term    `cbor:"3,keyasint"` // the sender's term in the roster election
		Roster  *Roster `cbor:"4,keyasint,omitempty"`
	}
	// RosterCancel asks the driver of that version to go back to the former voters (R12).
	// It is repeated until the change has ended.
	RosterCancel struct {
		Version Version `cbor:"1,keyasint"` // of the joint roster the sender holds
	}
)

// Objection is why an agent refuses a first roster. Other versions may send further ones.
type Objection uint8

const (
	GenesisInvalid       Objection = iota + 1
	GenesisKnown                   // the agent that refuses has committed this genesis already
	GenesisElsewhere               // detail: the cluster to which the agent belongs
	GenesisOtherVoters             // detail: the agent's --voters
	GenesisOtherIdentity           // it has the agent's name with another identity
	GenesisPending                 // another genesis is pending there; detail: who proposed it
	GenesisPendingFormer           // as GenesisPending, by one with the proposer's name and another identity
)

type Envelope struct {
	To      PeerID
	Message Message
}
