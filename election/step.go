package election

import "time"

// Input is something that happens to an agent: a value of one of the types from Tick to ChangeRoster.
type Input any

// RequestID is chosen by the caller of a command, and returned in its Reply.
type RequestID uint64

type (
	// Tick reports that time has passed. It comes no later than Output.WakeAt.
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
		Run     RunID // 0: the lineage's number
		// Level is its feature level, and Heartbeat its configured one.
		Level     uint64
		Heartbeat time.Duration
	}
	// PeerLost reports that the connection was lost, and could not be made again.
	PeerLost struct{ Peer PeerID }
	// Persisted reports that this write, and so every earlier one, is durable.
	Persisted struct{ Write uint64 }
	// PersistFailed reports that this write failed: it may or may not be durable.
	PersistFailed struct{ Write uint64 }
	// Campaign makes this agent a candidate, or changes its priority.
	Campaign struct {
		Election Name
		Priority int
		Request  RequestID // 0: no reply is wanted
	}
	// Withdraw ends a candidacy of this host, and any leadership that rests on it.
	Withdraw struct {
		Election Name
		// Remaining is the highest priority of the host's other candidates. For these the
		// agent stays a candidate; 0: there are none.
		Remaining int
		// Stopped is the term under which nothing of this host acts any more, so that it is
		// released at once; 0: a Stopped is to follow.
		Stopped Term
	}
	// Overtake has this agent take a higher term at once in an election that it leads: the
	// present one may not be told to those that are to act now (K4d).
	Overtake struct{ Election Name }
	// Stopped is the receipt: all that acted under this agent's term have stopped.
	Stopped struct {
		Election Name
		Term     Term
	}
	// Resign asks the leader to step down.
	Resign struct {
		Election Name
		Request  RequestID
	}
	// Transfer asks the leader to step down in favour of a candidate.
	Transfer struct {
		Election Name
		To       PeerID
		Request  RequestID
	}
	// Drain makes the agent hand over everything and be a candidate nowhere. Off ends that.
	Drain struct {
		On      bool
		Request RequestID
	}
	// Configure replaces the settings that may change while an agent runs. No lead is lost by it.
	Configure struct {
		Preempt      bool
		PreemptDelay time.Duration
	}
	// Shutdown makes the agent hand over everything for good.
	Shutdown struct{}
	// Inquire asks a majority of the voters who leads.
	Inquire struct {
		Election Name
		Request  RequestID
	}
	// Barred reports that another process may have made promises in this agent's name, or
	// that promises of this agent are lost. It may neither vote nor lead until its next start.
	Barred struct {
		Code          string // of its warning
		Detail        string // what the agent found out, in its own words
		Name          string // this agent's
		Agent         string // an agent that remembers more writes of this one than its disk has
		Known, Writes uint64 // how many writes Agent remembers; how many the disk has
		Cluster       string // another cluster, of which this agent was a voter
	}
	// Late reports by how much the agent is behind: its timer, its loop, or the write under way.
	Late struct{ By time.Duration }
	// Suspended reports that the host was suspended since the last input. Its clock may now
	// be wrong by more than the drift.
	Suspended struct{}
	// ChangeRoster asks for a change of the voters, or of what else the roster says.
	ChangeRoster struct {
		Add      []Voter
		Remove   []PeerID
		Settings Settings // those that are not zero are changed
		Right    Right    // replaces the rule about its election; without agents and a priority: there is to be no rule
		Cancel   bool     // instead go back from the change under way
		Restore  bool     // instead go back, at this agent alone, to the roster before the one that it adopted
		Request  RequestID
	}
)

// Output is what one step asks for. It is carried out in the order of its fields.
type Output struct {
	Record   *LifeRecord    // put this on record, before anything else becomes visible (K1); nil: nothing has changed
	Withdraw []Withdrawal   // step down: stop acting, at once; answered by Stopped
	Persist  *Persist       // write this; answered by Persisted or PersistFailed
	Send     []Envelope     // each message rests only on what is durable already
	Redial   []PeerID       // nothing comes over these peers' connections: close them and dial again
	Announce []Announcement // to the programs of this host
	Replies  []Reply        // outcomes of commands
	WakeAt   Instant        // the next Tick is to come no later than this
}

// Persist is a state to be made durable. Writes are numbered from 1, and at most one is in
// progress.
type Persist struct {
	Write uint64
	State State
}

// Withdrawal is the end of a leadership of this agent: it steps down.
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
	Leader   Holder // the new leader; zero for NoLeader
	Term     Term   // the leader's; for NoLeader the term that ended
	Reason   Reason
}

type Event string

const (
	Leading   Event = "leading"   // this agent leads
	Following Event = "following" // another agent leads
	NoLeader  Event = "none"      // no leader is known
	NewTerm   Event = "term"      // same leader, higher term
)

// Reason is why a leadership started or ended, in words that programs and operators see.
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
	Leader  Record // answers Inquire
}
