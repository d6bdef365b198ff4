package api

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
