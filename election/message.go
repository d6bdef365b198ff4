package election

import "time"

// Message is what one agent sends another. Every concrete message is a value
// of this package; the set is closed.
type Message interface{ message() }

// MaxDetail is how many bytes the Detail of a GenesisRefuse may have.
const MaxDetail = 1024

// SendID numbers the sends of one boot of one agent. Each request, each
// retransmission and each round of heartbeats has its own.
type SendID uint64

// Selection: Bully (Garcia-Molina 1982).
type (
	// BullyElection asks better-ranked candidates whether one of them is alive.
	BullyElection struct {
		Election Name   `cbor:"1,keyasint"`
		Round    uint64 `cbor:"2,keyasint"`
		Rank     Rank   `cbor:"3,keyasint"` // the sender's
	}
	// BullyAnswer says: I am alive and rank higher, stand back. A nominee that
	// waits for its votes also sends it unasked, with round 0.
	BullyAnswer struct {
		Election Name   `cbor:"1,keyasint"`
		Round    uint64 `cbor:"2,keyasint"` // the round answered
	}
	// BullyDecline says: I rank higher but can't lead now, do not wait for me.
	BullyDecline struct {
		Election Name   `cbor:"1,keyasint"`
		Round    uint64 `cbor:"2,keyasint"`
	}
	// BullyCoordinator announces a confirmed leader.
	BullyCoordinator struct {
		Election Name   `cbor:"1,keyasint"`
		Term     Term   `cbor:"2,keyasint"`
		Leader   Holder `cbor:"3,keyasint"`
	}
)

// RoundID names one circulation of a ring token.
type RoundID struct {
	Origin PeerID `cbor:"1,keyasint"`
	Number uint64 `cbor:"2,keyasint"`
}

// Selection: Ring (Chang and Roberts 1979).
type (
	// RingElection is the token: the best candidate it has met so far.
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
	// RingElected announces a confirmed leader round the ring.
	RingElected struct {
		Election Name   `cbor:"1,keyasint"`
		Term     Term   `cbor:"2,keyasint"`
		Leader   Holder `cbor:"3,keyasint"`
	}
)

// Authority: votes, leases, heartbeats.
type (
	// VoteRequest asks a voter for its promise. The requester's roster travels
	// with it, so that a voter that is behind catches up.
	VoteRequest struct {
		Election Name          `cbor:"1,keyasint"`
		Term     Term          `cbor:"2,keyasint"`
		Holder   Holder        `cbor:"3,keyasint"`
		Lease    time.Duration `cbor:"4,keyasint"`
		Send     SendID        `cbor:"5,keyasint"`
		Rank     Rank          `cbor:"6,keyasint"`
		Roster   Roster        `cbor:"7,keyasint"`
	}
	// VoteGrant is a durable promise, for the send it answers.
	VoteGrant struct {
		Election Name    `cbor:"1,keyasint"`
		Term     Term    `cbor:"2,keyasint"`
		Holder   Holder  `cbor:"3,keyasint"`
		Send     SendID  `cbor:"4,keyasint"`
		Version  Version `cbor:"5,keyasint"`
		Stamp    Instant `cbor:"6,keyasint"` // the voter's clock, to be echoed
	}
	// VoteRefusal answers a request that was not granted.
	VoteRefusal struct {
		Election  Name          `cbor:"1,keyasint"`
		Term      Term          `cbor:"2,keyasint"` // the term refused
		Holder    Holder        `cbor:"3,keyasint"`
		Granted   Term          `cbor:"5,keyasint"` // the term on record
		GrantedTo Holder        `cbor:"6,keyasint"`
		Remaining time.Duration `cbor:"7,keyasint,omitempty"` // of that promise, if it runs
		Reason    RefusalReason `cbor:"8,keyasint"`
		Roster    *Roster       `cbor:"9,keyasint,omitempty"` // if newer than the requester's
	}
	// Release gives a term back before its lease ends.
	Release struct {
		Election  Name          `cbor:"1,keyasint"`
		Term      Term          `cbor:"2,keyasint"`
		Holder    Holder        `cbor:"3,keyasint"`
		Target    PeerID        `cbor:"4,keyasint,omitempty"` // of a transfer
		StandDown time.Duration `cbor:"5,keyasint,omitempty"` // for so long the sender is no candidate
		Leaving   bool          `cbor:"6,keyasint,omitempty"` // the sender's agent stops
	}
	// Heartbeat says that its sender leads, and renews the leases of all it
	// leads at once.
	Heartbeat struct {
		Boot    BootID  `cbor:"1,keyasint"`
		Send    SendID  `cbor:"2,keyasint"`
		Version Version `cbor:"3,keyasint"`
		Echo    Instant `cbor:"4,keyasint,omitempty"` // the newest stamp the receiver sent
		Claims  []Claim `cbor:"5,keyasint"`           // sorted by election
	}
	// HeartbeatAck answers every heartbeat. From a voter of that version it
	// renews each claim that is not among the nacks.
	HeartbeatAck struct {
		Boot    BootID  `cbor:"1,keyasint"` // of the heartbeat's sender
		Send    SendID  `cbor:"2,keyasint"`
		Version Version `cbor:"3,keyasint"`
		Stamp   Instant `cbor:"4,keyasint"` // the receiver's clock, to be echoed
		Nacks   []Nack  `cbor:"5,keyasint,omitempty"`
		Roster  *Roster `cbor:"6,keyasint,omitempty"` // if newer than the sender's
	}
)

// Claim is one leadership in a heartbeat.
type Claim struct {
	Election  Name          `cbor:"1,keyasint"`
	Term      Term          `cbor:"2,keyasint"`
	Remaining time.Duration `cbor:"3,keyasint"` // of the lease, at the send
	// Rank is compared when two leaders without quorum meet; with quorum it is
	// zero, and not sent.
	Rank Rank `cbor:"4,keyasint,omitzero"`
}

// Nack is a claim the voter does not honour.
type Nack struct {
	Election Name `cbor:"1,keyasint"`
	Term     Term `cbor:"2,keyasint"` // the term on record
}

// RefusalReason says why a vote was refused.
type RefusalReason uint8

const (
	RefusedStaleTerm   RefusalReason = iota + 1 // the term on record is as high or higher
	RefusedPromised                             // a promise to another holder still runs
	RefusedVersion                              // the rosters differ
	RefusedFloor                                // the term is not above the roster's floor
	RefusedNotVoter                             // the receiver is no voter
	RefusedUnavailable                          // the voter can't write its promises
	RefusedLease                                // the lease is longer than those in use
	RefusedLeap                                 // the term is too far above those known
)

// Knowledge: what an agent tells another that just connected or asks.
type (
	// Inquiry asks for a Report; with Durable, for one that is sent once the
	// receiver has written something to its disk; with Election, for one that
	// tells of that election only.
	Inquiry struct {
		ID       uint64 `cbor:"1,keyasint"`
		Durable  bool   `cbor:"2,keyasint,omitempty"`
		Election Name   `cbor:"3,keyasint,omitempty"`
	}
	// Report is what the sender's voter has on record. It is sent unasked, with
	// ID 0, to every peer that connects and when a roster is committed.
	Report struct {
		ID        uint64     `cbor:"1,keyasint,omitempty"`
		Voter     bool       `cbor:"2,keyasint,omitempty"` // the sender is on its roster
		Roster    *Roster    `cbor:"3,keyasint,omitempty"`
		Standings []Standing `cbor:"4,keyasint,omitempty"` // sorted by election
		Stamp     Instant    `cbor:"5,keyasint,omitempty"` // the sender's clock, to be echoed
		Election  Name       `cbor:"6,keyasint,omitempty"` // it tells of this one only; empty: of all
		Boot      BootID     `cbor:"7,keyasint,omitempty"` // the sender's
		Writes    uint64     `cbor:"8,keyasint,omitempty"` // how many writes of its state are durable
		Known     uint64     `cbor:"9,keyasint,omitempty"` // how many of the receiver's it remembers
	}
)

// Candidacies: what gossip has no room for, or tells too late.
type (
	// Candidacies is every election in which the sender stands.
	Candidacies struct {
		Boot        BootID      `cbor:"1,keyasint"`
		Serial      uint64      `cbor:"2,keyasint"`           // rises with each change within a boot
		Candidacies []Candidacy `cbor:"3,keyasint,omitempty"` // sorted by election
	}
	// CandidaciesAck says that it arrived; it is repeated until then.
	CandidaciesAck struct {
		Boot   BootID `cbor:"1,keyasint"` // of the candidacies' sender
		Serial uint64 `cbor:"2,keyasint"`
		By     BootID `cbor:"3,keyasint"` // of who knows: its next life does not
	}
)

// Standing is one grant on record, as reported.
type Standing struct {
	Election  Name          `cbor:"1,keyasint"`
	Term      Term          `cbor:"2,keyasint"`
	Holder    Holder        `cbor:"3,keyasint"`
	Remaining time.Duration `cbor:"4,keyasint,omitempty"` // 0: the promise is over
}

// Roster: genesis and changes (docs/guarantees.md).
type (
	// GenesisPropose asks a named agent to accept a first roster.
	GenesisPropose struct {
		Genesis Genesis `cbor:"1,keyasint"`
	}
	// GenesisAccept says the proposal is pending on the sender's disk.
	GenesisAccept struct {
		Cluster string `cbor:"1,keyasint"`
		Attempt uint64 `cbor:"2,keyasint"`
	}
	// GenesisRefuse says why it is not.
	GenesisRefuse struct {
		Cluster string    `cbor:"1,keyasint"`
		Attempt uint64    `cbor:"2,keyasint"`
		Reason  Objection `cbor:"3,keyasint"`
		Detail  string    `cbor:"4,keyasint,omitempty"` // depends on the reason
	}
	// RosterPropose asks a voter to hold a new roster, by the leader of the
	// roster election in term Driver.
	RosterPropose struct {
		Driver Term   `cbor:"1,keyasint"`
		Holder Holder `cbor:"2,keyasint"`
		Roster Roster `cbor:"3,keyasint"`
	}
	// RosterAccept says the proposed version is on the sender's disk.
	RosterAccept struct {
		Driver  Term    `cbor:"1,keyasint"`
		Version Version `cbor:"2,keyasint"`
		Highest Term    `cbor:"3,keyasint"` // the highest term the sender knows of any election
		// Promise is what is left, when the sender accepts, of the longest promise
		// it has given in any election, what it holds after a start included (R4).
		Promise time.Duration `cbor:"4,keyasint,omitempty"`
	}
	// RosterRefuse says that it is not, and what the sender holds instead.
	RosterRefuse struct {
		Driver  Term    `cbor:"1,keyasint"`
		Version Version `cbor:"2,keyasint"`
		Granted Term    `cbor:"3,keyasint"` // the sender's term in the roster election
		Roster  *Roster `cbor:"4,keyasint,omitempty"`
	}
	// RosterCancel asks the driver of that version's change to go back to the
	// former voters (R12). It is repeated until the change has ended.
	RosterCancel struct {
		Version Version `cbor:"1,keyasint"` // of the joint roster the sender holds
	}
)

func (BullyElection) message()    {}
func (BullyAnswer) message()      {}
func (BullyDecline) message()     {}
func (BullyCoordinator) message() {}
func (RingElection) message()     {}
func (RingAck) message()          {}
func (RingElected) message()      {}
func (VoteRequest) message()      {}
func (VoteGrant) message()        {}
func (VoteRefusal) message()      {}
func (Release) message()          {}
func (Heartbeat) message()        {}
func (HeartbeatAck) message()     {}
func (Inquiry) message()          {}
func (Report) message()           {}
func (Candidacies) message()      {}
func (CandidaciesAck) message()   {}
func (GenesisPropose) message()   {}
func (GenesisAccept) message()    {}
func (GenesisRefuse) message()    {}
func (RosterPropose) message()    {}
func (RosterAccept) message()     {}
func (RosterRefuse) message()     {}
func (RosterCancel) message()     {}

// Objection is why an agent refuses a first roster. Agents of other versions may
// send more of them.
type Objection uint8

const (
	GenesisInvalid       Objection = iota + 1
	GenesisKnown                   // it is committed there already
	GenesisElsewhere               // detail: the cluster to which the agent belongs
	GenesisOtherVoters             // detail: the agent's --voters
	GenesisOtherIdentity           // than the agent has
	GenesisPending                 // there is another one; detail: who proposed it
	GenesisPendingFormer           // as above, by an agent of the proposer's name, under another identity
)

// Envelope is a message with the peer it goes to.
type Envelope struct {
	To      PeerID
	Message Message
}
