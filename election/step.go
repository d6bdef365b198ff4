package election

// Input is one thing that happens to an agent. The set is closed.
type Input interface{ input() }

// RequestID lets the caller of a command find its Reply. It is chosen by the
// caller and opaque to the elector.
type RequestID uint64

type (
	// Tick says that time has passed; it is due at Output.WakeAt at the latest.
	Tick struct{}
	// Received is a message from an authenticated peer.
	Received struct {
		From    PeerID
		Message Message
	}
	// ViewChanged replaces the view of the live members.
	ViewChanged struct{ View View }
	// PeerConnected says that messages to the peer may now arrive.
	PeerConnected struct {
		Peer PeerID
		Boot BootID
	}
	// PeerLost says that the peer's connection closed and a redial failed.
	PeerLost struct{ Peer PeerID }
	// Persisted says that the state of that Persist, and so of every earlier
	// one, is on disk.
	Persisted struct{ Write uint64 }
	// PersistFailed says that it may or may not be on disk.
	PersistFailed struct{ Write uint64 }
	// Campaign makes this agent a candidate, or changes its priority. It is
	// refused when the agent holds as many elections as it may.
	Campaign struct {
		Election Name
		Priority int
		Request  RequestID // 0: no reply is wanted
	}
	// Withdraw ends a candidacy of this host, and the leadership it had.
	Withdraw struct {
		Election Name
		// Remaining is the priority of the best of the host's other candidates,
		// for which the agent stands on; 0: there is none.
		Remaining int
	}
	// Stopped is the receipt that whoever acted on this agent's behalf under
	// the term acts no more.
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
	// Drain makes the agent hand over what it leads and stand in nothing, or
	// ends that.
	Drain struct {
		On      bool
		Request RequestID
	}
	// Shutdown makes the agent hand over what it leads, for good.
	Shutdown struct{}
	// Inquire asks a majority of the voters who leads.
	Inquire struct {
		Election Name
		Request  RequestID
	}
	// Barred says that this agent's promises are not the only ones in its name, or
	// not all of them: it grants and leads nothing from then on.
	Barred struct {
		Code          string // of its warning
		Detail        string // of what the agent itself found
		Name          string // this agent's
		Agent         string // that remembers more writes of this agent than there are
		Known, Writes uint64 // how many it remembers, and how many there are
		Cluster       string // another one, in which this agent was a voter
	}
	// Suspended says that the host was suspended since the last input: what was
	// counted before may be wrong by more than the drift.
	Suspended struct{}
	// ChangeRoster asks for a change of the voters, or with Cancel for the way
	// back from the one under way.
	ChangeRoster struct {
		Add     []Voter
		Remove  []PeerID
		Cancel  bool
		Restore bool // or to go back, at this agent alone, to what it held before it took over another cluster's
		Request RequestID
	}
)

func (Tick) input()          {}
func (Received) input()      {}
func (ViewChanged) input()   {}
func (PeerConnected) input() {}
func (PeerLost) input()      {}
func (Persisted) input()     {}
func (PersistFailed) input() {}
func (Campaign) input()      {}
func (Withdraw) input()      {}
func (Stopped) input()       {}
func (Resign) input()        {}
func (Transfer) input()      {}
func (Drain) input()         {}
func (Shutdown) input()      {}
func (Inquire) input()       {}
func (Barred) input()        {}
func (Suspended) input()     {}
func (ChangeRoster) input()  {}

// Output is what one step asks for, to be carried out in the order of its
// fields: Withdraw before Persist before Send before Announce.
type Output struct {
	Withdraw []Withdrawal   // stop acting, at once; answered by Stopped
	Persist  *Persist       // write this; answered by Persisted or PersistFailed
	Send     []Envelope     // each rests only on what is already on disk
	Announce []Announcement // tell the programs of this host
	Replies  []Reply        // outcomes of commands
	WakeAt   Instant        // Tick then at the latest
}

// Persist is a state to be made durable. Writes are numbered from 1 and at
// most one is under way.
type Persist struct {
	Write uint64
	State State
}

// Withdrawal ends this agent's own leadership.
type Withdrawal struct {
	Election Name
	Term     Term
	StopBy   Instant // whoever acts under the term must have stopped by then
	Reason   Reason
}

// Announcement is a change of who leads, as this agent knows it.
type Announcement struct {
	Election Name
	Event    Event
	Leader   Holder // the new leader; zero for NoLeader
	Term     Term   // the leader's; for NoLeader the term that ended
	Reason   Reason
}

// Event says what changed.
type Event string

const (
	Leading   Event = "leading"   // this agent leads
	Following Event = "following" // another agent leads
	NoLeader  Event = "none"      // nobody is known to lead
	NewTerm   Event = "term"      // same leader, higher term
)

// Reason says why something changed, in words fit for a log line.
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
	ReasonWithdrawn    Reason = "candidacy withdrawn"
	ReasonSuperseded   Reason = "superseded by a higher term"
	ReasonReleased     Reason = "released by its leader"
	ReasonSuspended    Reason = "its host was suspended"
	ReasonBarred       Reason = "it must not lead any more: its warnings say why"
)

// Reply is the outcome of a command. A nil Refusal means that it was accepted.
type Reply struct {
	Request RequestID
	Refusal *Refusal
	Leader  Standing // answers Inquire
}
