package api

import (
	"time"
)

// History answers GET /v1/history: the newest transition last.
type History struct {
	History []Transition `json:"history"`
}

// Transition is one change of an election's leader, as this agent saw it, or a command that this agent
// got.
type Transition struct {
	Time     time.Time `json:"time"`
	Election string    `json:"election"`
	Type     string    `json:"type"` // leader, no_leader, term, restarted, started, paused or command
	Leader   *Leader   `json:"leader"`
	Term     uint64    `json:"term"`
	Reason   string    `json:"reason"`
	// GapMS, only in entries of type leader, is the time since the former leader was last heard, if it fell silent.
	// If the former leader announced its end, GapMS equals VacantMS.
	GapMS int64 `json:"gap_ms"`
	// Evidence describes, for people, what this agent knew at that moment: what it had last heard of the
	// leader, and when.
	Evidence   string `json:"evidence"`
	BoottimeNS int64  `json:"boottime_ns"`
	// VacantMS, only in entries of type leader, is how long no leader was known before this leader.
	VacantMS int64 `json:"vacant_ms,omitempty"`
	// HeardBoottimeNS is when the former leader was last heard, if it fell silent.
	HeardBoottimeNS int64 `json:"heard_boottime_ns,omitempty"`
	// By, only in entries of type command, is the process that gave the command. Leader and Term are those at that time.
	By *Caller `json:"by,omitempty"`
	// Admin, only in entries of type command: an administrator gave the command, or only an administrator may give it.
	Admin bool `json:"admin,omitempty"`
	// Count, only in entries of type command, is how often the same command came within a minute, if more than once.
	Count int `json:"count,omitempty"`
	// DownMS, only in entries of the types started and paused, is how long this agent had not run, to a minute or so; 0: unknown.
	DownMS int64 `json:"down_ms,omitempty"`
}

// Caller is the process that gave a command, as the kernel of its host names it.
type Caller struct {
	UID     uint32 `json:"uid"`     // 4294967295: unknown
	User    string `json:"user"`    // the user's number if it has no name
	PID     int32  `json:"pid"`     // 0: unknown
	Command string `json:"command"` // the name of the process; empty: unknown
	Host    string `json:"host"`    // the agent that the process asked; if that agent passed the command on, it has reported all other fields
}

// DrillDelay is how long an agent waits between its answer to a drill and its stop, so that the answer is
// sent first.
const DrillDelay = 50 * time.Millisecond

// The drills of an agent that leads. DrillKill is not a request: `doyen drill --kill` kills the agent.
const (
	DrillTransfer = "transfer" // the agent hands the election over
	DrillStop     = "stop"     // the agent hands over all that it leads, stops, and is started again
	DrillKill     = "kill"     // the agent is killed by SIGKILL
)

// DrillRequest is the body of POST /v1/elections/NAME/drill.
type DrillRequest struct {
	How  string `json:"how"`          // transfer or stop
	To   string `json:"to,omitempty"` // the agent that a transfer hands over to
	Term uint64 `json:"term"`         // the leader's term; if it leads in another term, nothing is done
}

// Drills answers GET /v1/elections/NAME/drill.
type Drills struct {
	Agents []DrillView `json:"agents"`
}

// DrillView is what one agent reports about itself before and after a drill. If the agent was not
// reached, only its name and ID are set.
type DrillView struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Reached bool   `json:"reached"`
	BootID  string `json:"boot_id"` // random, made at the start of this process run
	Keeper  bool   `json:"keeper"`  // a keeper starts the next process if this one is killed
	Record  bool   `json:"record"`  // the next process has the record, so it goes on leading
	Service bool   `json:"service"` // a service manager started this agent
	// Refused is why no drill should be run now, as far as this agent knows. If it is empty, nothing
	// prevents a drill.
	Refused string `json:"refused"`
	// Changes are the newest changes of all elections, the newest last, without Evidence.
	Changes []Transition `json:"changes"`
}
