package live

import (
	"time"

	"github.com/doyen-election/doyen/testbed/hosts"
)

type Model struct {
	Agents    []Row
	Algorithm string
	Profile   string
	Quorum    bool
	Heartbeat time.Duration
	Lease     time.Duration
	Elapsed   time.Duration
	Leader    string // "": no agent reports that it leads
	Term      uint64
	Remaining time.Duration   // of the leader's lease
	Takeovers []time.Duration // from the fault to the next leader
	HandOvers []time.Duration // the same, where the leader was asked to hand over
	Together  time.Duration   // how long two agents led at once
	Selected  int             // index into Agents
	Lines     []Line          // oldest first
	Ask       string          // how to run the doyen command here
}

type Row struct {
	Name    string
	Status  hosts.Status
	State   string // one of api's State constants, "" if the agent does not answer
	Follows string
	Term    uint64
	Addr    string
	Socket  string
}

// Mood is what a line is about. It decides the line's colour.
type Mood int

const (
	Plain Mood = iota
	Good       // an agent leads, all agree
	Bad        // a fault, a failure
	Faint      // less important
)

type Line struct {
	At   time.Duration // since the start
	Mood Mood
	Text string
}
