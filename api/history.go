package api

import "time"

// History answers GET /v1/history: the newest transition last.
type History struct {
	History []Transition `json:"history"`
}

// Transition is one change of who led an election, as this agent saw it.
type Transition struct {
	Time     time.Time `json:"time"`
	Election string    `json:"election"`
	Type     string    `json:"type"` // leader, no_leader, term or restarted
	Leader   *Leader   `json:"leader"`
	Term     uint64    `json:"term"`
	Reason   string    `json:"reason"`
	// GapMS, of type leader, is for how long no leader was known before.
	GapMS int64 `json:"gap_ms"`
	// Evidence says, in words for a person, what this agent knew at that moment: what
	// it had last heard of the leader, and when.
	Evidence   string `json:"evidence"`
	BoottimeNS int64  `json:"boottime_ns"`
}
