package api

// Voters answers GET and POST /v1/voters: the roster.
type Voters struct {
	Cluster string        `json:"cluster"` // drawn when the first roster was made; empty before
	Version RosterVersion `json:"version"`
	Voters  []Voter       `json:"voters"`
	Next    []Voter       `json:"next"`  // while a change is under way: the voters to come
	Floor   uint64        `json:"floor"` // no term at or below it is granted any more
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

// VotersRequest is the body of POST /v1/voters: one of the three, a name.
type VotersRequest struct {
	Add     string `json:"add,omitempty"`
	Remove  string `json:"remove,omitempty"`
	Replace string `json:"replace,omitempty"` // the voter of that name by the live agent of that name
}

// CodeNotVoter refuses a change of the roster asked of an agent that has no vote.
const CodeNotVoter = "not_voter"
