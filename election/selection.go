package election

// Field is who could lead one election right now, as one agent sees it: what a
// selection algorithm decides on.
type Field struct {
	Self Rank // of this agent, whether it can lead or not
	// Able says that this agent can be nominated now: it stands with a priority
	// above 0, is not draining, not standing down, not cut off from the majority.
	Able bool
	// Ranks are the live candidates that can be elected, best first, self
	// included when Able.
	Ranks []Rank
	// Leads is this agent's own confirmed leadership, nil when it has none.
	Leads *Leadership
	// Full says that as many rounds are under way here as there may be: none
	// begins now, and one that would begin again ends instead, so that others get
	// their turn.
	Full bool
	// Patience is how long to wait for the outcome of somebody else's round: the
	// end of the old lease and a vote timeout more.
	Patience Instant
}

// Leadership is a confirmed leader and its term.
type Leadership struct {
	Leader Holder
	Term   Term
}

// Verdict is what a selection algorithm asks for after one input.
type Verdict struct {
	Send    []Envelope
	Nominee bool    // this agent should ask for votes; said once a round
	WakeAt  Instant // Tick then; Never if there is nothing to wait for
}
