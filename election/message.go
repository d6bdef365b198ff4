package election

import (
	"reflect"
	"time"
)

// Message is what one agent sends to another. Its type is one of those that package codec lists.
type Message any

// Kind returns the name of the message's type, for metrics and logs.
func Kind(m Message) string {
	if m == nil {
		return "unknown"
	}
	return reflect.TypeOf(m).Name()
}

const MaxElections = 1024 // how many elections one message may be about

// MaxDetail is how many bytes the Detail of a GenesisRefuse may have.
const MaxDetail = 1024

const MaxMeta = 256 // how many bytes the Meta of a Candidacy may have

// SendID numbers the vote requests and heartbeats that one process run of an agent sends. A
// repeated request has a new number.
type SendID uint64

// Selection: Bully (Garcia-Molina 1982).
type (
	// BullyElection asks a better-ranked candidate whether it is alive.
	BullyElection struct {
		Election Name   `cbor:"1,keyasint"`
		Round    uint64 `cbor:"2,keyasint"`
		Rank     Rank   `cbor:"3,keyasint"` // the sender's
	}
	// BullyAnswer reports that the sender is alive and ranks higher. A nominee also sends it
	// without a BullyElection, with Round 0.
	BullyAnswer struct {
		Election Name   `cbor:"1,keyasint"`
		Round    uint64 `cbor:"2,keyasint"` // of the BullyElection that it answers
	}
	// BullyDecline reports that the sender can't lead, or ranks lower. The receiver need not wait for the sender.
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
	// RingElection is the token. Best is the best candidate that the token has met.
	RingElection struct {
		Election Name    `cbor:"1,keyasint"`
		Round    RoundID `cbor:"2,keyasint"`
		Best     Rank    `cbor:"3,keyasint"`
	}
	// RingAck confirms to the previous hop that the token arrived.
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
	// VoteGrant is a durable promise. It answers one send of a vote request.
	VoteGrant struct {
		Election Name    `cbor:"1,keyasint"`
		Term     Term    `cbor:"2,keyasint"`
		Holder   Holder  `cbor:"3,keyasint"`
		Send     SendID  `cbor:"4,keyasint"`
		Version  Version `cbor:"5,keyasint"`
		Stamp    Instant `cbor:"6,keyasint"`          // of the voter's clock; the next heartbeat echoes it
		Word     Word    `cbor:"7,keyasint,omitzero"` // the voter's, as it is on disk (W3); needs level 3
	}
	// VoteRefusal answers a vote request that was not granted.
	VoteRefusal struct {
		Election  Name          `cbor:"1,keyasint"`
		Term      Term          `cbor:"2,keyasint"` // the term that was asked for
		Holder    Holder        `cbor:"3,keyasint"`
		Granted   Term          `cbor:"5,keyasint"` // the term that the voter has granted
		GrantedTo Holder        `cbor:"6,keyasint"`
		Remaining time.Duration `cbor:"7,keyasint,omitempty"` // how long the promise to GrantedTo still runs; 0: it has expired
		Reason    RefusalReason `cbor:"8,keyasint"`
		Roster    *Roster       `cbor:"9,keyasint,omitempty"` // the voter's, if it is newer than the requester's
	}
	// Release gives a term back before its lease ends.
	Release struct {
		Election  Name          `cbor:"1,keyasint"`
		Term      Term          `cbor:"2,keyasint"`
		Holder    Holder        `cbor:"3,keyasint"`
		Target    PeerID        `cbor:"4,keyasint,omitempty"` // the candidate to which the sender transfers; empty: none
		StandDown time.Duration `cbor:"5,keyasint,omitempty"` // how long the sender is not a candidate from now on
		Leaving   bool          `cbor:"6,keyasint,omitempty"` // the sender's agent stops
		Forget    bool          `cbor:"7,keyasint,omitempty"` // all voters have the empty word on disk: drop it with the grant (W11); needs level 3
	}
	// Heartbeat claims all elections that its sender leads, and asks voters to renew its leases.
	Heartbeat struct {
		Lineage  LineageID  `cbor:"1,keyasint"`
		Send     SendID     `cbor:"2,keyasint"`
		Version  Version    `cbor:"3,keyasint"`
		Echo     Instant    `cbor:"4,keyasint,omitempty"` // the newest Stamp that the sender got from the receiver
		Claims   []Claim    `cbor:"5,keyasint"`           // sorted by election
		Progress []Progress `cbor:"6,keyasint,omitempty"` // of the sender and of other voters, if it is new; needs level 2
	}
	// HeartbeatAck answers a heartbeat. If its sender is a voter and has the heartbeat's roster
	// version, it renews each claim of the heartbeat that is not in Nacks.
	HeartbeatAck struct {
		Lineage  LineageID  `cbor:"1,keyasint"` // of the heartbeat's sender
		Send     SendID     `cbor:"2,keyasint"`
		Version  Version    `cbor:"3,keyasint"`
		Stamp    Instant    `cbor:"4,keyasint"` // of this ack's sender, by its clock; the next heartbeat echoes it
		Nacks    []Nack     `cbor:"5,keyasint,omitempty"`
		Roster   *Roster    `cbor:"6,keyasint,omitempty"` // if it is newer than that of the heartbeat's sender
		Progress []Progress `cbor:"7,keyasint,omitempty"` // of this ack's sender, if it is new; needs level 2
	}
)

// Progress is how many writes of an agent's state were durable at one instant of its clock.
type Progress struct {
	Peer    PeerID    `cbor:"1,keyasint"`
	Lineage LineageID `cbor:"2,keyasint"`
	Stamp   Instant   `cbor:"3,keyasint"` // when this was so, by the agent's clock
	Writes  uint64    `cbor:"4,keyasint"` // how many writes of the agent's state are durable
}

// Claim is one leadership in a heartbeat.
type Claim struct {
	Election  Name          `cbor:"1,keyasint"`
	Term      Term          `cbor:"2,keyasint"`
	Remaining time.Duration `cbor:"3,keyasint"`          // of the lease, when the heartbeat is sent
	Rank      Rank          `cbor:"4,keyasint,omitzero"` // only without quorum, where two leaders may meet
}

// Nack reports that the voter does not renew a claim.
type Nack struct {
	Election Name `cbor:"1,keyasint"`
	Term     Term `cbor:"2,keyasint"` // the term that the voter has on record
}

// RefusalReason is why a voter does not grant a term.
type RefusalReason uint8

const (
	RefusedStaleTerm   RefusalReason = iota + 1 // the term on record is not lower
	RefusedPromised                             // a promise to another holder has not expired
	RefusedVersion                              // voter and requester have different rosters
	RefusedFloor                                // the term is not above the roster's floor
	RefusedNotVoter                             // the receiver is not a voter
	RefusedUnavailable                          // the voter can't write its promises
	RefusedLease                                // the lease is longer than those in use
	RefusedLeap                                 // the term is too far above the known ones
	RefusedRight                                // the roster does not let the holder lead the election
)

// Knowledge.
type (
	// Inquiry asks for a Report.
	Inquiry struct {
		ID       uint64 `cbor:"1,keyasint"`
		Durable  bool   `cbor:"2,keyasint,omitempty"` // answer only after one more write to the disk
		Election Name   `cbor:"3,keyasint,omitempty"` // ask about this election only; empty: about all
	}
	// Report is what the sender has on record. With ID 0 it answers no Inquiry: an agent sends
	// it to every peer that connects, and to its peers when a roster is committed.
	Report struct {
		ID       uint64    `cbor:"1,keyasint,omitempty"`
		Voter    bool      `cbor:"2,keyasint,omitempty"` // the sender is on its roster
		Roster   *Roster   `cbor:"3,keyasint,omitempty"`
		Records  []Record  `cbor:"4,keyasint,omitempty"` // sorted by election
		Stamp    Instant   `cbor:"5,keyasint,omitempty"` // of the sender's clock; the next heartbeat echoes it
		Election Name      `cbor:"6,keyasint,omitempty"` // the report is about this election only; empty: about all
		Lineage  LineageID `cbor:"7,keyasint,omitempty"` // the sender's
		Writes   uint64    `cbor:"8,keyasint,omitempty"` // how many writes of the sender's state are durable
		Known    uint64    `cbor:"9,keyasint,omitempty"` // how many durable writes of the receiver the sender remembers
	}
)

// What voters hear of leaders, for agents that do not hear these leaders themselves; needs level 4.
type (
	// Listen asks a voter which leaders it hears.
	Listen struct {
		Stamp     Instant `cbor:"1,keyasint"` // of the sender's clock; the News echoes it
		Elections []Name  `cbor:"2,keyasint"` // sorted
	}
	// News answers a Listen. It lists the elections that the sender leads, or whose leader the sender hears itself.
	News struct {
		Echo    Instant `cbor:"1,keyasint"`           // the Stamp of the Listen
		Leaders []Heard `cbor:"2,keyasint,omitempty"` // sorted by election
	}
	// Heard is a leader as a voter knows it.
	Heard struct {
		Election  Name          `cbor:"1,keyasint"`
		Term      Term          `cbor:"2,keyasint"`
		Holder    Holder        `cbor:"3,keyasint"`
		Remaining time.Duration `cbor:"4,keyasint"`           // how long the lease still runs when the News is sent, as far as the voter knows
		Age       time.Duration `cbor:"5,keyasint,omitempty"` // of the heartbeat by which the voter knows this
		Sure      bool          `cbor:"6,keyasint,omitempty"` // the voter has granted the term, or leads in it
	}
)

// Messages about the elections in which an agent is a candidate.
type (
	// Candidacies are all candidacies of the sender.
	Candidacies struct {
		Lineage     LineageID   `cbor:"1,keyasint"`
		Serial      uint64      `cbor:"2,keyasint"`           // rises with each change within a process run
		Candidacies []Candidacy `cbor:"3,keyasint,omitempty"` // sorted by election
	}
	// CandidaciesAck reports that the Candidacies arrived. Their sender repeats them until then.
	CandidaciesAck struct {
		Lineage LineageID `cbor:"1,keyasint"` // of the agent that sent the candidacies
		Serial  uint64    `cbor:"2,keyasint"`
		By      LineageID `cbor:"3,keyasint"` // the lineage of the ack's sender, as in its hello: version 0.2.0 accepts no other number
		// Run is the run ID of the ack's sender. Its next life needs the candidacies again. 0: it equals By.
		Run RunID `cbor:"4,keyasint,omitempty"`
	}
)

// Calls of the socket API from one agent to another. The elector does not see them.
type (
	// Call asks the receiver to carry out a call. The receiver trusts only what the session
	// proves: which agent sends it. Caller is unproven, and only for the log.
	Call struct {
		ID     uint64 `cbor:"1,keyasint"`
		Method string `cbor:"2,keyasint"`
		Path   string `cbor:"3,keyasint"`
		Body   []byte `cbor:"4,keyasint,omitempty"`
		Caller string `cbor:"5,keyasint,omitempty"` // user and program, as text
	}
	// CallAnswer answers a Call. Status is an HTTP status.
	CallAnswer struct {
		ID     uint64 `cbor:"1,keyasint"`
		Status uint64 `cbor:"2,keyasint"`
		Body   []byte `cbor:"3,keyasint,omitempty"`
	}
)

// Bounds of a Call, in bytes.
const (
	MaxCallBody = 64 << 10
	MaxCallText = 256 // of Path, and of Caller
)

// Record is one grant that a voter has on record, and how long its promise still runs.
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
	// GenesisAccept reports that the sender has the proposal on disk, as pending.
	GenesisAccept struct {
		Cluster string `cbor:"1,keyasint"`
		Attempt uint64 `cbor:"2,keyasint"`
	}
	GenesisRefuse struct {
		Cluster string    `cbor:"1,keyasint"`
		Attempt uint64    `cbor:"2,keyasint"`
		Reason  Objection `cbor:"3,keyasint"`
		Detail  string    `cbor:"4,keyasint,omitempty"` // its meaning depends on Reason: see Objection
	}
	// RosterPropose asks a voter to accept a new roster. Its sender drives the change: Driver is
	// the term in which it led the roster election.
	RosterPropose struct {
		Driver  Term   `cbor:"1,keyasint"`
		Holder  Holder `cbor:"2,keyasint"`
		Roster  Roster `cbor:"3,keyasint"`
		CatchUp bool   `cbor:"4,keyasint,omitempty"` // some voter has words: catch up before the acceptance counts (W9)
	}
	// RosterAccept reports that the sender has the proposed version on disk.
	RosterAccept struct {
		Driver  Term    `cbor:"1,keyasint"`
		Version Version `cbor:"2,keyasint"`
		Highest Term    `cbor:"3,keyasint"` // the highest term that the sender knows, in any election
		// Promise is how long the longest promise of the sender still runs, over all elections.
		// Promises from earlier runs of its process count as well (R4).
		Promise time.Duration `cbor:"4,keyasint,omitempty"`
		Words   WordsHeld     `cbor:"5,keyasint,omitempty"`
	}
	// RosterRefuse reports that the sender does not accept the proposal. Roster is the sender's own.
	RosterRefuse struct {
		Driver  Term    `cbor:"1,keyasint"`
		Version Version `cbor:"2,keyasint"`
		Granted Term    `cbor:"3,keyasint"` // the term that the sender has granted in the roster election
		Roster  *Roster `cbor:"4,keyasint,omitempty"`
	}
	// RosterCancel asks the agent that drives the change to Version to go back to the former
	// voters (R12). The sender repeats it until the change has ended.
	RosterCancel struct {
		Version Version `cbor:"1,keyasint"` // of the joint roster that the sender has
	}
)

// Objection is why an agent refuses a first roster. Other versions of Doyen may send other values.
type Objection uint8

const (
	GenesisInvalid       Objection = iota + 1
	GenesisKnown                   // the refusing agent has already committed this genesis
	GenesisElsewhere               // the refusing agent belongs to another cluster; Detail names that cluster
	GenesisOtherVoters             // the refusing agent's --voters differ; Detail lists them
	GenesisOtherIdentity           // the roster has the refusing agent's name with another peer ID
	GenesisPending                 // the refusing agent has accepted another genesis, still pending; Detail names the proposer
	GenesisPendingFormer           // as GenesisPending, but the two proposers have one name and different peer IDs
)

type Envelope struct {
	To      PeerID
	Message Message
}
