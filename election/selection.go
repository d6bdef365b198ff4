package election

// Field is what one agent knows of the candidates of an election now.
type Field struct {
	Self Rank // of this agent, also if it can't lead
	Able bool // this agent can be nominated
	// Ranks are the candidates that can be elected, best first, self included if Able.
	Ranks []Rank
	Leads *Leadership // this agent's own; nil: it does not lead
	// Full says that this agent has begun as many rounds as it may: it begins none now,
	// and ends one that would begin again, so that other elections get their turn.
	Full bool
	// Patience is until when to wait for another agent's round: a vote timeout after
	// the end of the old lease.
	Patience Instant
}

// Leadership is a confirmed leader and its term.
type Leadership struct {
	Leader Holder
	Term   Term
}

// Verdict is what a selection algorithm asks for.
type Verdict struct {
	Send    []Envelope
	Nominee bool    // this agent should ask for votes; once in a round
	WakeAt  Instant // when Tick is wanted
}
