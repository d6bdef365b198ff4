package api

import (
	"time"
)

// History answers GET /v1/history: the newest transition last.
type History struct {
	History []Transition `json:"history"`
}

// Transition is one change of who led an election, as this agent saw it, or a command that this
// agent was given.
type Transition struct {
	Time     time.Time `json:"time"`
	Election string    `json:"election"`
	Type     string    `json:"type"` // leader, no_leader, term, restarted or command
	Leader   *Leader   `json:"leader"`
	Term     uint64    `json:"term"`
	Reason   string    `json:"reason"`
	// GapMS, of type leader, is the time since the former leader was last heard, if it fell
	// silent or nobody was known to lead in between.
	GapMS int64 `json:"gap_ms"`
	// Evidence says, in words for a person, what this agent knew at that moment: what
	// it had last heard of the leader, and when.
	Evidence   string `json:"evidence"`
	BoottimeNS int64  `json:"boottime_ns"`
	// VacantMS, of type leader, is for how long no leader was known before.
	VacantMS int64 `json:"vacant_ms,omitempty"`
	// HeardBoottimeNS is when the former leader was last heard, if it fell silent.
	HeardBoottimeNS int64 `json:"heard_boottime_ns,omitempty"`
	// By, of type command, is who gave it. Leader and Term are those of that moment.
	By *Caller `json:"by,omitempty"`
}

// Caller is the process that gave a command, as the kernel of its host names it.
type Caller struct {
	UID     uint32 `json:"uid"`     // 4294967295: not known
	User    string `json:"user"`    // the number, if it has no name
	PID     int32  `json:"pid"`     // 0: not known
	Command string `json:"command"` // the name of the process; empty: not known
	Host    string `json:"host"`    // the agent that it asked; if that passed the command on, all else is as it reports
}

// DrillDelay is how long after the answer to a drill its stop follows, so that the answer leaves
// first.
const DrillDelay = 50 * time.Millisecond

// The drills of an agent that leads. No agent is asked to kill itself: `doyen drill --kill` does it.
const (
	DrillTransfer = "transfer" // it hands the election over
	DrillStop     = "stop"     // it hands over all that it leads, stops, and is started again
	DrillKill     = "kill"     // it dies as by kill -9
)

// DrillRequest is the body of POST /v1/elections/NAME/drill.
type DrillRequest struct {
	How  string `json:"how"`          // transfer or stop
	To   string `json:"to,omitempty"` // the agent that a transfer is to
	Term uint64 `json:"term"`         // the leader's; if it leads in another one, nothing is done
}

// Drills answers GET /v1/elections/NAME/drill.
type Drills struct {
	Agents []DrillView `json:"agents"`
}

// DrillView is what one agent answers about itself before and after a drill. If it was not reached,
// only its name and ID are there.
type DrillView struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Reached bool   `json:"reached"`
	BootID  string `json:"boot_id"` // of this process run
	Keeper  bool   `json:"keeper"`  // a keeper starts the next process if this one is killed
	Record  bool   `json:"record"`  // which then goes on leading, by the record
	Service bool   `json:"service"` // a service manager started this agent
	// Refused is why no drill should be run now, as far as this agent knows; empty: nothing is
	// against it.
	Refused string `json:"refused"`
	// Changes are the newest ones of all elections, without their evidence, the newest last.
	Changes []Transition `json:"changes"`
}
