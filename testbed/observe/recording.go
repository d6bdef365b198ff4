package observe

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
)

// RecordingFormat is the format that this package writes.
const RecordingFormat = 1

// StateDown is the state of a host whose agent does not run. The other states are api's:
// leading, following, electing, no_quorum and idle.
const StateDown = "down"

// Recording is all that was seen in one run; a report draws it. Instants are nanoseconds of
// the machine's CLOCK_BOOTTIME. Lists are in the order of their instants.
type Recording struct {
	Format    int       `json:"format"`
	Scenario  string    `json:"scenario"`
	Algorithm string    `json:"algorithm"` // bully or ring
	Profile   string    `json:"profile"`
	Quorum    bool      `json:"quorum"`
	Network   string    `json:"network"` // namespaces or loopback
	Heartbeat int64     `json:"heartbeat_ns"`
	Lease     int64     `json:"lease_ns"`
	Wall      time.Time `json:"wall"` // the wall clock at From

	From      election.Instant `json:"from_ns"`
	To        election.Instant `json:"to_ns"`
	Hosts     []HostRecord     `json:"hosts"`    // in the order of the cluster
	Programs  []ProgramSpan    `json:"programs"` // when programs acted under a token
	Faults    []Fault          `json:"faults"`
	Steps     []Step           `json:"steps"`
	Takeovers []Takeover       `json:"takeovers"`
	Overlaps  []OverlapSpan    `json:"overlaps"` // empty, as it should be
	Messages  []MessageSample  `json:"messages"`
	Failed    string           `json:"failed,omitempty"` // why the run failed; empty if it passed
}

type HostRecord struct {
	Name  string `json:"name"`
	Addr  string `json:"addr"`
	Voter bool   `json:"voter"`
	// Spans of each election follow each other without a gap.
	Spans []StateSpan `json:"spans"`
}

// StateSpan is a stretch in which an agent reported the same about an election. The beginning
// and end of leading are the agent's own stamps. The times of other states are only as precise
// as the polls are frequent.
type StateSpan struct {
	Election string           `json:"election"`
	State    string           `json:"state"`
	Leader   string           `json:"leader,omitempty"` // whom it named
	Term     uint64           `json:"term,omitempty"`
	Reason   string           `json:"reason,omitempty"` // the agent's, for this change
	From     election.Instant `json:"from_ns"`
	To       election.Instant `json:"to_ns"`
}

// ProgramSpan is a stretch in which a program acted under one token: from the first to the
// last stamp that it made itself.
type ProgramSpan struct {
	Program  string           `json:"program"`
	Host     string           `json:"host"`
	Election string           `json:"election"`
	Term     uint64           `json:"term"`
	PID      int              `json:"pid"` // of the process that acted
	From     election.Instant `json:"from_ns"`
	To       election.Instant `json:"to_ns"`
}

// Fault is something done to the hosts.
type Fault struct {
	// What is crash, terminate, freeze, wipe, cut, link, carrier, disk, cpu,
	// memory or clock.
	What  string   `json:"what"`
	Where []string `json:"where"` // the hosts it hit
	// Peers are the hosts at the other ends of the links, for a fault of links.
	Peers  []string         `json:"peers,omitempty"`
	Detail string           `json:"detail,omitempty"` // such as "delay 100ms, loss 5 %" or "one way"
	From   election.Instant `json:"from_ns"`
	To     election.Instant `json:"to_ns"` // Never while the fault lasts; a recording has the end of the run instead
}

// OfProgram begins the detail of a fault that hit a program, and not its host.
const OfProgram = "program "

// Program is the program that a fault hit; "" if it hit the host.
func (f Fault) Program() string {
	name, ok := strings.CutPrefix(f.Detail, OfProgram)
	if !ok {
		return ""
	}
	return name
}

type Step struct {
	Line int              `json:"line"`
	Text string           `json:"text"`
	From election.Instant `json:"from_ns"`
	To   election.Instant `json:"to_ns"`
	Saw  string           `json:"saw,omitempty"` // what an expectation found
}

// Takeover is one leadership that follows on another. Gap is how long there was no leader in
// between; it is negative if the two overlapped.
type Takeover struct {
	Election string           `json:"election"`
	Before   string           `json:"before"` // who led, "" if none had
	After    string           `json:"after"`
	Term     uint64           `json:"term"`
	At       election.Instant `json:"at_ns"` // when After began to lead
	Gap      int64            `json:"gap_ns"`
	// GoesOn says that the same leader took a higher term and reported no gap. A leader does
	// so if a voter can't renew its term.
	GoesOn bool `json:"goes_on,omitempty"`
	// Cause is the newest fault that hit the former leader, if one did. Took is the time from
	// that fault to At.
	Cause string `json:"cause,omitempty"`
	Took  int64  `json:"took_ns,omitempty"`
}

// OverlapSpan is a stretch in which two agents claimed to lead, or two programs acted, at the
// same time.
type OverlapSpan struct {
	Election string           `json:"election"`
	By       string           `json:"by"` // agents or programs
	First    string           `json:"first"`
	Second   string           `json:"second"`
	From     election.Instant `json:"from_ns"`
	To       election.Instant `json:"to_ns"`
}

// MessageSample has one agent's counters at an instant: messages by kind since the agent's
// start. The difference of two samples is what an election between them cost.
type MessageSample struct {
	Host     string            `json:"host"`
	At       election.Instant  `json:"at_ns"`
	Step     int               `json:"step"` // line of the script before which the counters were read
	Sent     map[string]uint64 `json:"sent"`
	Received map[string]uint64 `json:"received"`
}

func (r *Recording) Write(path string) error {
	encoded, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("encode the recording: %w", err)
	}
	if err := os.WriteFile(path, append(encoded, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}

func ReadRecording(path string) (*Recording, error) {
	encoded, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	var r Recording
	if err := json.Unmarshal(encoded, &r); err != nil {
		return nil, fmt.Errorf("decode the recording %s: %w", path, err)
	}
	if r.Format != RecordingFormat {
		return nil, fmt.Errorf("decode the recording %s: format %d, want %d; record it again", path, r.Format, RecordingFormat)
	}
	return &r, nil
}
