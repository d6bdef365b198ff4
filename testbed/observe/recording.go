package observe

import (
	"fmt"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// StateDown is the state of a host whose agent does not run. The other states are api's:
// leading, following, electing, no_quorum and idle.
const StateDown = "down"

// Recording is all that was seen in one run; a report draws it. Instants are nanoseconds of
// the machine's CLOCK_BOOTTIME. Lists are in the order of their instants.
type Recording struct {
	Scenario  string
	Algorithm string // bully or ring
	Profile   string
	Quorum    bool
	Network   string    // namespaces or loopback
	Wall      time.Time // the wall clock at From

	From      election.Instant
	To        election.Instant
	Hosts     []HostRecord  // in the order of the cluster
	Programs  []ProgramSpan // when programs acted under a token
	Faults    []Fault
	Steps     []Step
	Takeovers []Takeover
	Overlaps  []OverlapSpan // empty if all went well
	Failed    string        // why the run failed; empty if it passed
}

type HostRecord struct {
	Name  string
	Voter bool
	// The spans of an election follow each other without a gap.
	Spans []StateSpan
}

// StateSpan is a stretch in which an agent reported the same about an election. The beginning
// and end of leading are the agent's own stamps. The times of other states are only as precise
// as the polls are frequent.
type StateSpan struct {
	Election string
	State    string
	Leader   string // the leader that the agent named
	Term     uint64
	Reason   string // the agent's reason for this change
	From     election.Instant
	To       election.Instant
}

// String says what the agent reported.
func (s StateSpan) String() string {
	text := "is " + s.State
	switch s.State {
	case api.StateLeading:
		text = fmt.Sprintf("leads in term %d", s.Term)
	case api.StateFollowing:
		text = fmt.Sprintf("follows %s in term %d", s.Leader, s.Term)
	case api.StateElecting:
		text = "knows no leader and elects one"
	case api.StateNoQuorum:
		text = "reaches no majority"
	}
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}

// ProgramSpan is a stretch in which a program acted under one token: from the first to the
// last stamp that it made itself.
type ProgramSpan struct {
	Program  string
	Host     string
	Election string
	Term     uint64
	PID      int // of the process that acted
	From     election.Instant
	To       election.Instant
}

// Fault is something done to the hosts.
type Fault struct {
	// What is crash, terminate, freeze, wipe, cut, link, carrier, disk, cpu or clock.
	What  string
	Where []string // the hosts it hit
	// Peers are the hosts at the other ends of the links, for a fault of links.
	Peers   []string
	Detail  string // such as "delay 100ms, loss 5 %" or "one way"
	Program string // the program that the fault hit; "": it hit the host
	From    election.Instant
	To      election.Instant // Never while the fault lasts; in a recording, the end of the run instead
}

type Step struct {
	Text string
	From election.Instant
	To   election.Instant
	Saw  string // what an expectation found
}

// Takeover is one leadership that follows on another. Gap is how long there was no leader in
// between; it is negative if the two overlapped.
type Takeover struct {
	Election string
	Before   string // who led, "" if none had
	After    string
	Term     uint64
	At       election.Instant // when After began to lead
	Gap      int64
	// GoesOn says that the same leader took a higher term and reported no gap. That happens if a
	// voter can't renew the leader's term.
	GoesOn bool
	// Cause is the newest fault that hit the former leader, if one did. Took is the time from
	// that fault to At.
	Cause string
	Took  int64
}

// OverlapSpan is a stretch in which two agents claimed to lead, or two programs acted, at the
// same time.
type OverlapSpan struct {
	Election              string
	By                    string // agents or programs
	First, Second         string // in the order of their starts
	FirstTerm, SecondTerm uint64
	From, To              election.Instant
}
