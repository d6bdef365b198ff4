package api

// Voters answers GET and POST /v1/voters: the roster.
type Voters struct {
	Cluster string        `json:"cluster"` // drawn when the first roster was made; empty before
	Version RosterVersion `json:"version"`
	Voters  []Voter       `json:"voters"`
	Next    []Voter       `json:"next"`  // while a change is under way: the voters to come
	Floor   uint64        `json:"floor"` // no term at or below it is granted any more
	Change  *VotersChange `json:"change,omitempty"`
}

// VotersChange is a change under way, as the agent that was asked knows it.
type VotersChange struct {
	Driver     string   `json:"driver"`      // the agent that drives it; empty: none is known to
	Committed  bool     `json:"committed"`   // majorities of both sets have accepted it: from now on both are needed
	GoingBack  bool     `json:"going_back"`  // it was cancelled
	WaitsFor   []string `json:"waits_for"`   // at the driver: the voters that have not accepted; elsewhere: those it can't reach
	PromisesMS int64    `json:"promises_ms"` // for so long promises given under the former voters may run, which the driver waits for
}

// RosterVersion orders rosters, by driver first.
type RosterVersion struct {
	Driver  uint64 `json:"driver"`
	Counter uint64 `json:"counter"`
}

// Voter is an agent whose vote counts.
type Voter struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	Connected bool   `json:"connected"` // this agent itself counts as connected
}

// VotersRequest is the body of POST /v1/voters: one of the three, a name; or
// cancel; or restore.
type VotersRequest struct {
	Add     string `json:"add,omitempty"`
	Remove  string `json:"remove,omitempty"`
	Replace string `json:"replace,omitempty"` // the voter of that name by the live agent of that name
	Cancel  bool   `json:"cancel,omitempty"`  // go back from the change under way
	Restore bool   `json:"restore,omitempty"` // this agent alone: back to the voters before it took over a roster that dropped several
}

// CodeNotVoter refuses a change of the roster asked of an agent that has no vote.
const CodeNotVoter = "not_voter"
