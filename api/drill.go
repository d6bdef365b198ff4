package api

import "time"

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
