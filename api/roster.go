package api

// Voters answers GET and POST /v1/voters: the roster.
type Voters struct {
	Cluster string        `json:"cluster"` // a random ID, made with the first roster; empty before that
	Version RosterVersion `json:"version"`
	Voters  []Voter       `json:"voters"`
	Next    []Voter       `json:"next"`  // the new voters while a change is under way
	Floor   uint64        `json:"floor"` // no term up to this one is granted any more
	Change  *VotersChange `json:"change,omitempty"`
}

// VotersChange is the change under way, as the agent that was asked knows it.
type VotersChange struct {
	Driver     string   `json:"driver"`      // the agent that drives the change; empty: unknown
	Committed  bool     `json:"committed"`   // majorities of both sets have accepted the change; from then on, both majorities are needed
	GoingBack  bool     `json:"going_back"`  // the change was cancelled
	WaitsFor   []string `json:"waits_for"`   // the driver names the voters that have not accepted; other agents name those that they can't reach
	PromisesMS int64    `json:"promises_ms"` // how long promises under the former roster may still last: the driver waits that long
}

// RosterVersion orders rosters: by Driver, then by Counter.
type RosterVersion struct {
	Driver  uint64 `json:"driver"`
	Counter uint64 `json:"counter"`
}

// Voter is an agent whose vote counts.
type Voter struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	Connected bool   `json:"connected"` // this agent itself always counts as connected
}

// VotersRequest is the body of POST /v1/voters. Exactly one field is set, besides ID; the first three are
// names.
type VotersRequest struct {
	Add     string `json:"add,omitempty"`
	Remove  string `json:"remove,omitempty"`
	Replace string `json:"replace,omitempty"` // replace the voter of that name by the live agent of the same name
	Cancel  bool   `json:"cancel,omitempty"`  // undo the change under way
	// ID, with Add and Replace, is the peer ID that the live agent must have: anyone who has the cluster
	// key can join under any name.
	ID      string `json:"id,omitempty"`
	Restore bool   `json:"restore,omitempty"` // only at this agent: undo the adoption of a roster that dropped several voters
}

// CodeNotVoter refuses a change of the roster because the agent that was asked is not a voter.
const CodeNotVoter = "not_voter"

// Settings answers GET and POST /v1/settings, and POST /v1/elections/NAME/allow: what all agents of the
// cluster agree on besides the voters.
type Settings struct {
	Algorithm string  `json:"algorithm"` // bully or ring
	LeaseMS   int64   `json:"lease_ms"`
	Agreed    bool    `json:"agreed"` // the roster has the algorithm and the lease; if false, they are from this agent's configuration
	Rights    []Right `json:"rights"` // the rules; any agent may lead an election that has no rule
}

// Right is a rule about an election: which agents may lead it.
type Right struct {
	Election    string   `json:"election"`
	Agents      []string `json:"agents"`                 // names, or the IDs of agents that are not members now; empty: any agent
	IDs         []string `json:"ids"`                    // the IDs of all these agents, sorted
	MaxPriority int      `json:"max_priority,omitempty"` // the highest priority of a candidate; 0: any
}

// SettingsRequest is the body of POST /v1/settings. A missing field leaves its setting unchanged.
type SettingsRequest struct {
	Algorithm string `json:"algorithm,omitempty"`
	LeaseMS   int64  `json:"lease_ms,omitempty"`
}

// AllowRequest is the body of POST /v1/elections/NAME/allow. If it has neither field, the rule about the
// election is deleted.
type AllowRequest struct {
	Agents      []string `json:"agents,omitempty"` // names, or IDs
	MaxPriority int      `json:"max_priority,omitempty"`
}
