package election

import "time"

// Input is something that happens to an agent. Its type is one of those from Tick to ChangeRoster.
type Input any

// RequestID is chosen by the caller of a command, and returned in its Reply.
type RequestID uint64

type (
	// Tick reports that time has passed. It arrives no later than Output.WakeAt.
	Tick struct{}
	// Received is a message from an authenticated peer.
	Received struct {
		From    PeerID
		Message Message
	}
	// ViewChanged replaces the view.
	ViewChanged struct{ View View }
	// PeerConnected reports that the peer can be reached now.
	PeerConnected struct {
		Peer    PeerID
		Lineage LineageID
		Run     RunID // 0: it equals Lineage
		// Level is the peer's feature level, and Heartbeat the heartbeat interval that it has configured.
		Level     uint64
		Heartbeat time.Duration
	}
	// PeerLost reports that the connection broke, and that dialing again has failed.
	PeerLost struct{ Peer PeerID }
	// Persisted reports that the write with this number is durable, and with it every earlier one.
	Persisted struct{ Write uint64 }
	// PersistFailed reports that the write with this number failed: its state may be durable or not.
	PersistFailed struct{ Write uint64 }
	// Campaign makes this agent a candidate, or changes its priority.
	Campaign struct {
		Election   Name
		Priority   int
		Meta       string    // what the program reports about itself
		LastResort bool      // it may lead only if no other candidate can
		Request    RequestID // 0: the caller wants no reply
	}
	// Withdraw ends a candidacy of this host. A leadership that depends on this candidacy ends too.
	Withdraw struct {
		Election Name
		// Remaining is the highest priority among the other candidates of this host. The agent
		// stays a candidate for them. 0: there are none.
		Remaining int
		Meta      string // what the program with that priority reports about itself
		// Stopped is a term under which nothing on this host acts any more: the agent releases this
		// term at once. 0: a separate input Stopped will name the term.
		Stopped Term
	}
	// Overtake makes this agent take a higher term at once, in an election that it leads: the
	// programs that are to act now must not be given the present term (K4d).
	Overtake struct{ Election Name }
	// Stopped is the receipt: everything that acted under this term of this agent has stopped.
	Stopped struct {
		Election Name
		Term     Term
	}
	// Resign asks the leader to step down.
	Resign struct {
		Election Name
		Term     Term // step down only from this term; 0: from any
		Request  RequestID
	}
	// Transfer asks the leader to step down in favour of a candidate.
	Transfer struct {
		Election Name
		To       PeerID
		Term     Term // step down only from this term; 0: from any
		Request  RequestID
	}
	// WriteWord replaces the word of an election that this agent leads.
	WriteWord struct {
		Election Name
		Term     Term     // only while it leads in this term
		If       WordRank // the ID of the word that it replaces; zero: there must be no word
		Text     string   // at most MaxWord bytes
		Request  RequestID
	}
	// ReadWord asks for the word of an election that this agent leads. If a former life won the term, this
	// life must first ask for the votes again: they contain the word (W7).
	ReadWord struct {
		Election Name
		Request  RequestID
	}
	// ReadWords asks for the words that this agent has as a voter. They may be older than what leaders know.
	ReadWords struct {
		Election Name // only its word; empty: all words
		Request  RequestID
	}
	// Drain makes the agent hand over all leaderships and be no candidate. With On false it ends the drain.
	Drain struct {
		On      bool
		Request RequestID
	}
	// Configure replaces the settings that may change while an agent runs. It ends no leadership.
	Configure struct {
		Preempt      bool
		PreemptDelay time.Duration
	}
	// Shutdown makes the agent hand over all leaderships. It can't be undone.
	Shutdown struct{}
	// Inquire asks a majority of the voters who leads.
	Inquire struct {
		Election Name
		Request  RequestID
	}
	// Barred reports that another process may have made promises in this agent's name, or
	// that promises of this agent are lost. It may neither vote nor lead until its next start.
	Barred struct {
		Code          string // the code of the warning about this
		Detail        string // what the agent found, as text
		Name          string // of this agent
		Agent         string // an agent that remembers more writes of this agent than this agent's disk has
		Known, Writes uint64 // how many writes Agent remembers, and how many the disk has
		Cluster       string // another cluster, of which this agent was a voter
	}
	// Late reports how late the agent is. The reason may be its timer, its loop, or the write in progress.
	Late struct{ By time.Duration }
	// Suspended reports that the host was suspended since the last input. Its clock may now
	// be wrong by more than the drift.
	Suspended struct{}
	// ChangeRoster asks for a change of the roster: of its voters, settings or rights.
	ChangeRoster struct {
		Add      []Voter
		Remove   []PeerID
		Settings Settings // the fields that are not zero replace the roster's
		Right    Right    // replaces the right of its election; if it has neither agents nor a priority, that right is removed
		Cancel   bool     // if set: only go back from the change in progress
		Restore  bool     // if set: only go back, on this agent alone, to the roster before the one that it adopted
		Request  RequestID
	}
)

// Output is what one step asks the agent to do, in the order of the fields.
type Output struct {
	Record   *LifeRecord    // put this on record before anything below becomes visible (K1); nil: nothing has changed
	Withdraw []Withdrawal   // step down from these: stop all that acts under them, at once; a Stopped answers each
	Persist  *Persist       // write this to the disk; Persisted or PersistFailed answers it
	Send     []Envelope     // each message depends only on state that is durable already
	Redial   []PeerID       // nothing arrives over the connections to these peers: close them and dial again
	Announce []Announcement // report these to the programs of this host
	Replies  []Reply        // to commands
	WakeAt   Instant        // the next Tick must arrive no later than this
}

// Persist is what is to be written to the disk. Writes are numbered from 1, and no two are in
// progress at the same time.
type Persist struct {
	Write  uint64
	Writes uint64      // how often this agent has written its state or words, including this write
	Words  []NamedWord // the words that have changed, sorted by election; synced before the state. If a word is zero, its election's word is removed after the state is synced
	State  *State      // nil: only words have changed
}

// Withdrawal reports that this agent steps down from a leadership.
type Withdrawal struct {
	Election Name
	Term     Term
	StopBy   Instant // all that act under the term must have stopped by then
	Reason   Reason
}

// Announcement is a change of leader, as this agent knows it.
type Announcement struct {
	Election Name
	Event    Event
	Leader   Holder // the new leader; zero if Event is NoLeader
	Term     Term   // the leader's; if Event is NoLeader, the term that has ended
	Reason   Reason
	Word     Word // the election's, if Event is Leading; zero: it has none
}

type Event string

const (
	Leading   Event = "leading"   // this agent leads
	Following Event = "following" // another agent leads
	NoLeader  Event = "none"      // no leader is known
	NewTerm   Event = "term"      // same leader, higher term
)

// Reason is why a leadership started or ended. Programs and operators see this text.
type Reason string

const (
	ReasonElected      Reason = "elected"
	ReasonLeaseExpired Reason = "lease expired"
	ReasonResigned     Reason = "resigned"
	ReasonTransferred  Reason = "transferred"
	ReasonPreempted    Reason = "preempted by a higher priority"
	ReasonDraining     Reason = "draining"
	ReasonShutdown     Reason = "shut down"
	ReasonDisk         Reason = "its disk takes no writes"
	ReasonLate         Reason = "its agent runs late"
	ReasonWithdrawn    Reason = "candidacy withdrawn"
	ReasonSuperseded   Reason = "superseded by a higher term"
	ReasonReleased     Reason = "released by its leader"
	ReasonSuspended    Reason = "its host was suspended"
	ReasonBarred       Reason = "it must not lead any more: its warnings say why"
	ReasonNotAllowed   Reason = "the cluster's rights do not let it lead any more"
)

// Reply is the outcome of a command. A nil Refusal means that it was accepted.
type Reply struct {
	Request RequestID
	Refusal *Refusal
	Leader  Record // only in the answer to an Inquire
	Word    Word   // only in the answer to a WriteWord or ReadWord: the word now, as this agent knows it; zero: it knows of none
	Words   Words  // only in the answer to a ReadWords
}
