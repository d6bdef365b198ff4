package api

// Voters answers GET and POST /v1/voters: the roster.
type Voters struct {
	Cluster string        `json:"cluster"` // drawn when the first roster is made; empty before
	Version RosterVersion `json:"version"`
	Voters  []Voter       `json:"voters"`
	Next    []Voter       `json:"next"`  // while a change is under way: the new voters
	Floor   uint64        `json:"floor"` // no term at or below it is granted any more
	Change  *VotersChange `json:"change,omitempty"`
}

// VotersChange is a change under way, as the agent that was asked knows it.
type VotersChange struct {
	Driver     string   `json:"driver"`      // the agent that drives the change; empty: no driver is known
	Committed  bool     `json:"committed"`   // majorities of both sets have accepted it: from now on both are needed
	GoingBack  bool     `json:"going_back"`  // the change was cancelled
	WaitsFor   []string `json:"waits_for"`   // at the driver: the voters that have not accepted; elsewhere: those out of reach
	PromisesMS int64    `json:"promises_ms"` // how long promises under the former voters may still run: the driver waits for them
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

// VotersRequest is the body of POST /v1/voters. It has one of the fields; the first three
// are names.
type VotersRequest struct {
	Add     string `json:"add,omitempty"`
	Remove  string `json:"remove,omitempty"`
	Replace string `json:"replace,omitempty"` // replace the voter of that name by the live agent of that name
	Cancel  bool   `json:"cancel,omitempty"`  // go back from the change under way
	Restore bool   `json:"restore,omitempty"` // at this agent alone: go back from an adopted roster that dropped several voters
}

// CodeNotVoter refuses a change of the roster: the agent that was asked is not a voter.
const CodeNotVoter = "not_voter"

// Settings answers GET and POST /v1/settings, and POST /v1/elections/NAME/allow: what all agents
// of the cluster agree on besides the voters.
type Settings struct {
	Algorithm string  `json:"algorithm"` // bully or ring
	LeaseMS   int64   `json:"lease_ms"`
	Agreed    bool    `json:"agreed"` // both are carried by the roster; else they are those of this agent's configuration
	Rights    []Right `json:"rights"` // anybody may lead an election without a rule
}

// Right is a rule: who may lead an election.
type Right struct {
	Election    string   `json:"election"`
	Agents      []string `json:"agents"`                 // names, or the IDs of agents that are no members now; none: any agent
	MaxPriority int      `json:"max_priority,omitempty"` // of a candidate; 0: any
}

// SettingsRequest is the body of POST /v1/settings. What is missing stays as it is.
type SettingsRequest struct {
	Algorithm string `json:"algorithm,omitempty"`
	LeaseMS   int64  `json:"lease_ms,omitempty"`
}

// AllowRequest is the body of POST /v1/elections/NAME/allow. Without either field the rule about
// the election goes.
type AllowRequest struct {
	Agents      []string `json:"agents,omitempty"`
	MaxPriority int      `json:"max_priority,omitempty"`
}
