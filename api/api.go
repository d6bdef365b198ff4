// Package api has the JSON bodies of the calls of the socket API, version 1. Agents and clients share the
// package.
//
// Within v1, fields are added but never renamed or removed, and readers ignore fields that they do not
// know. Durations are integers in milliseconds (`_ms`). Wall-clock times are in RFC 3339. Fields in
// `_boottime_ns` are instants of CLOCK_BOOTTIME, which any process of the same host can compare with its
// own reading.
//
// The package defines only the fields. Their meaning is in docs/api.md.
package api

import "time"

// Agent answers GET /v1/agent.
type Agent struct {
	Name      string    `json:"name"`
	ID        string    `json:"id"`
	BootID    string    `json:"boot_id"` // random, made at the start of this process run
	Lineage   string    `json:"lineage"` // shared by this process run and the earlier runs whose record it continues
	Life      uint64    `json:"life"`    // the number of this process run within the lineage
	Keeper    bool      `json:"keeper"`
	Version   string    `json:"version"`
	Cluster   string    `json:"cluster"`
	Algorithm string    `json:"algorithm"`
	PID       int       `json:"pid"`
	UptimeMS  int64     `json:"uptime_ms"`
	Draining  bool      `json:"draining"`
	Quorum    Quorum    `json:"quorum"`
	Warnings  []Warning `json:"warnings"`

	HeartbeatMS    int64 `json:"heartbeat_ms"`
	LeaseMS        int64 `json:"lease_ms"`
	Preempt        bool  `json:"preempt"`
	PreemptDelayMS int64 `json:"preempt_delay_ms"`
}

// Agents answers GET /v1/agents.
type Agents struct {
	Agents []AgentReport `json:"agents"`
}

// AgentReport is what an agent reports about itself. If the agent was not reached, the report has only
// what gossip shows of it.
type AgentReport struct {
	Name     string    `json:"name"`
	ID       string    `json:"id"`
	Version  string    `json:"version"`
	Draining bool      `json:"draining"`
	Warnings []Warning `json:"warnings"`
	Keys     []Key     `json:"keys"`   // the cluster keys that the agent accepts
	LagMS    int64     `json:"lag_ms"` // how long the agent's loop took to answer, rounded up
	Reached  bool      `json:"reached"`
	// Dials show whether this agent reaches the ports of the agent that collects the reports. The
	// collector's own report shows whether the collector reaches the others by UDP. Dials are absent
	// unless requested.
	Dials []Dial `json:"dials,omitempty"`
}

// Quorum shows whether a majority of the voters can be reached.
type Quorum struct {
	Enabled   bool   `json:"enabled"`
	Voters    int    `json:"voters"`
	Needed    int    `json:"needed"`
	Reachable int    `json:"reachable"`
	State     string `json:"state"` // exists, edge (lost if one more voter is lost) or lost
}

// The states of a quorum.
const (
	QuorumExists = "exists"
	QuorumEdge   = "edge"
	QuorumLost   = "lost"
)

// Warning is something that an operator should repair. Code is stable and listed in docs/operations.md;
// Message contains what happened, why and what to do.
type Warning struct {
	Code    string    `json:"code"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// Members answers GET /v1/members.
type Members struct {
	Members []Member `json:"members"`
}

// Member is an agent as this agent's gossip sees it.
type Member struct {
	Name       string    `json:"name"`
	ID         string    `json:"id"`
	GossipAddr string    `json:"gossip_addr"`
	PeerAddr   string    `json:"peer_addr"`
	HTTPAddr   string    `json:"http_addr,omitempty"` // the address of --http, if other hosts can reach it
	Status     string    `json:"status"`              // alive, suspect, dead or left
	Priority   int       `json:"priority"`
	JoinedAt   time.Time `json:"joined_at"`
	Voter      bool      `json:"voter"`
	Candidate  bool      `json:"candidate"`
	Reason     string    `json:"reason,omitempty"` // why a check keeps the agent from being a candidate in "default"; known only for this agent
	Connected  bool      `json:"connected"`
	RTTMS      int64     `json:"rtt_ms"` // round trip, rounded up; 0: not measured
	Version    string    `json:"version"`
	Drained    bool      `json:"drained"`
}

// The statuses of a member.
const (
	StatusAlive   = "alive"
	StatusSuspect = "suspect" // only agents of older versions send this status
	StatusDead    = "dead"
	StatusLeft    = "left"
)

// Elections answers GET /v1/elections.
type Elections struct {
	Elections []Election `json:"elections"`
}

// Election is one election as this agent knows it. Authority names what this knowledge depends on.
type Election struct {
	Election             string   `json:"election"`
	State                string   `json:"state"` // leading, following, electing, no_quorum or idle
	IsLeader             bool     `json:"is_leader"`
	Leader               *Leader  `json:"leader"` // null: no leader is known
	Term                 uint64   `json:"term"`   // the fencing token
	Authority            string   `json:"authority"`
	LeaseRemainingMS     int64    `json:"lease_remaining_ms"`
	ValidUntilBoottimeNS int64    `json:"valid_until_boottime_ns"`
	ValidForMS           int64    `json:"valid_for_ms"` // the same as LeaseRemainingMS, under the name that is used for every deadline
	ViewAgeMS            int64    `json:"view_age_ms"`  // since this agent last heard the leader
	Candidates           []string `json:"candidates"`   // best-ranked first
	Index                uint64   `json:"index"`        // the index of the newest change, for watch?after=
}

type Leader struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	Addr string `json:"addr"`
	// Meta is what the leader's program reports about itself. It is empty if this agent knows of no such report.
	Meta string `json:"meta,omitempty"`
}

// The states of an election.
const (
	StateLeading   = "leading"
	StateFollowing = "following"
	StateElecting  = "electing"
	StateNoQuorum  = "no_quorum"
	StateIdle      = "idle"
)

// What the answer to a question about an election depends on.
const (
	AuthorityLease  = "lease"  // a lease from a majority, which has not expired
	AuthorityQuorum = "quorum" // a lease; the agent has just asked a majority of the voters
	AuthorityView   = "view"   // only what this agent sees; there may be two leaders
)

// Change is one line of GET /v1/elections/NAME/watch. Lines of type snapshot, lagged, meta or candidates
// carry the whole election. Readers ignore types that they do not know.
type Change struct {
	Index    uint64    `json:"index"`
	Time     time.Time `json:"time"`
	Type     string    `json:"type"` // snapshot, leader, no_leader, term, restarted, lagged, meta or candidates
	Election string    `json:"election"`
	Leader   *Leader   `json:"leader"`
	IsLeader bool      `json:"is_leader"`
	Term     uint64    `json:"term"`
	Reason   string    `json:"reason,omitempty"`
	// BoottimeNS is when this agent noticed the change, on CLOCK_BOOTTIME of its host.
	BoottimeNS int64     `json:"boottime_ns"`
	Snapshot   *Election `json:"snapshot,omitempty"`
	Missed     uint64    `json:"missed,omitempty"` // only in lines of type lagged: at least so many changes were lost
}

// The types of a change.
const (
	ChangeSnapshot = "snapshot"
	ChangeLeader   = "leader"
	ChangeNoLeader = "no_leader"
	ChangeTerm     = "term"
	// ChangeRestarted means that the agent was restarted and goes on as before. The history has it,
	// and so do watches that resume after an index.
	ChangeRestarted = "restarted"
	// ChangeCommand is a command that this agent got. Only the history has it.
	ChangeCommand = "command"
	// ChangeStarted means that the agent's process has started; ChangePaused, that it runs again after a pause of the
	// process or its host. Only the history has them. They name no election. For DownMS before that, the agent saw nothing.
	ChangeStarted = "started"
	ChangePaused  = "paused"
	ChangeLagged  = "lagged"
	// ChangeMeta means that the leader's Meta or Name has changed, within its term. ChangeCandidates means that the election's
	// Candidates have changed. Only watches have these lines. Such a line repeats the Index of the change before it.
	ChangeMeta       = "meta"
	ChangeCandidates = "candidates"
)

// TransferRequest is the body of POST /v1/elections/NAME/transfer.
type TransferRequest struct {
	To   string `json:"to"`
	Term uint64 `json:"term,omitempty"` // transfer only in this term; 0: in any term
}

// ResignRequest is the body of POST /v1/elections/NAME/resign. It may be empty.
type ResignRequest struct {
	Term uint64 `json:"term,omitempty"` // resign only in this term; 0: in any term
}

// DrainRequest is the body of POST /v1/drain.
type DrainRequest struct {
	On    bool   `json:"on"`
	Force bool   `json:"force,omitempty"` // drain even if this leaves an expected election without a candidate
	Agent string `json:"agent,omitempty"` // the name of the agent to drain; empty: the agent that is asked
}

// Outcome is the answer to the calls that change something.
type Outcome struct {
	Done    bool    `json:"done"`
	Message string  `json:"message"`
	Leader  *Leader `json:"leader,omitempty"` // the successor, if one is known
	Term    uint64  `json:"term,omitempty"`
	Waited  int64   `json:"waited_ms"`
}

// Reload answers POST /v1/reload. If Done is false, nothing was changed, and Message explains what is
// wrong. If Done is true, Message may name settings that only `doyen settings set` changes.
type Reload struct {
	Outcome
	Applied      []string `json:"applied"`       // the changed settings that are in effect now
	NeedsRestart []string `json:"needs_restart"` // the changed settings that take effect at the next start
}

// Error is the body of every answer that is not a success.
type Error struct {
	Err ErrorDetail `json:"error"`
}

// ErrorDetail is what went wrong. Codes are stable and listed in docs/api.md.
type ErrorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Word    *Word  `json:"word,omitempty"` // with CodeWordChanged and CodeNotAllVoters: what the word is now; nil: there is none
}

func (e *ErrorDetail) Error() string { return e.Message }

// The error codes.
const (
	CodeBadRequest   = "bad_request"
	CodeForbidden    = "forbidden"
	CodeNotFound     = "not_found"
	CodeNotLeader    = "not_leader"
	CodeNoCandidate  = "no_candidate"
	CodeNoQuorum     = "no_quorum"
	CodeBusy         = "busy"
	CodeTooLarge     = "too_large"
	CodeUnavailable  = "unavailable"
	CodeNotConfirmed = "not_confirmed"
	CodeNotResumable = "not_resumable"
	CodeWordChanged  = "word_changed"
	CodeNotAllVoters = "not_all_voters"
)
