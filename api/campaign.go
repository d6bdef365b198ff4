package api

import "time"

// CampaignRequest is the body of POST /v1/elections/NAME/campaign.
type CampaignRequest struct {
	// Meta is the program's description of itself, shown with its candidacy; at most 256 bytes.
	Meta string `json:"meta,omitempty"`
	// Priority replaces the agent's priority for this candidacy. With 0, the candidate never leads.
	Priority *int `json:"priority,omitempty"`
	// Proof is false if the process that connects is not the one that acts, for example curl in a script.
	// Then the end of that process proves nothing: only a receipt ends a term before its lease expires.
	Proof *bool `json:"proof,omitempty"`
	// Role is RoleCompanion, or RoleCandidate; empty means RoleCandidate.
	Role string `json:"role,omitempty"`
	// Companion is a companion's first report, only with RoleCompanion. If nil, the companion acts in the
	// election of the path.
	Companion *Companion `json:"companion,omitempty"`
}

// The roles of a campaign. A companion is never a candidate: it acts beside what leads on this host. A
// term is released only once the companion has stopped too.
const (
	RoleCandidate = "candidate"
	RoleCompanion = "companion"
)

// EveryElection has three meanings. In the path of a companion's campaign: all elections. Among a
// companion's elections: those that no companion names. Among its checks: the check of the whole host.
const EveryElection = "*"

// Companion is all that a companion reports about itself: first with its campaign, later by POST
// /v1/campaigns/ID/companion.
type Companion struct {
	// Elections are those in which it acts. EveryElection means all that no companion names.
	Elections []string `json:"elections,omitempty"`
	// Checks are its health checks, by election. The check of EveryElection counts in every election.
	Checks map[string]Check `json:"checks,omitempty"`
	// Failed gives, by election, the reason why a command for a leadership has failed.
	Failed map[string]string `json:"failed,omitempty"`
	// Holds are the terms under which it acts, by election. They count only in its first report. A
	// companion whose agent went away reports them to go on in these terms until their deadlines.
	Holds map[string]uint64 `json:"holds,omitempty"`
}

// Check is the outcome of a health check.
type Check struct {
	// Able is whether the host may lead. If Able is false and Reason is empty, there is no outcome yet.
	Able   bool   `json:"able"`
	Reason string `json:"reason,omitempty"` // why the host may not lead, for people
}

// CampaignEvent is one line of a campaign. The first is `candidate`. Then come `elected`, `renewed` each
// time the lease is extended, and `revoked`. After the receipt for the revoked term, the same candidacy
// may be elected again.
type CampaignEvent struct {
	Type     string `json:"type"`
	Campaign string `json:"campaign"` // the ID in POST /v1/campaigns/ID/stopped
	Election string `json:"election"`
	// Term is the fencing token; 0 in a candidate line. If a renewed line has a higher term than the line
	// before, it carries a new token.
	Term uint64 `json:"term,omitempty"`
	// ValidUntilBoottimeNS is in elected and renewed lines: the program may act until then, and not one
	// nanosecond longer, unless a later line extends it.
	ValidUntilBoottimeNS int64 `json:"valid_until_boottime_ns,omitempty"`
	// ValidForMS is the time left until the deadline (to act, or to stop) when the agent wrote the line.
	// It is rounded down, and absent if no time was left. Don't count it from the moment at which the
	// line was read: the line may have waited before.
	ValidForMS int64 `json:"valid_for_ms,omitempty"`
	// Authority, in elected and renewed lines, is AuthorityView if the agents run without a quorum: then
	// another program may have been elected as well. Empty means AuthorityLease.
	Authority string `json:"authority,omitempty"`
	// StopByBoottimeNS is in revoked lines: the program must have stopped by then.
	StopByBoottimeNS int64  `json:"stop_by_boottime_ns,omitempty"`
	Reason           string `json:"reason,omitempty"` // only in revoked lines
	// Word, in elected lines, is the election's word; nil: it has none.
	Word *Word `json:"word,omitempty"`
	// Change, in a companion's elected, revoked and changed lines, is what a watch would show.
	Change *Change `json:"change,omitempty"`
}

// The types of a campaign's lines.
const (
	CampaignCandidate = "candidate"
	CampaignElected   = "elected"
	CampaignRenewed   = "renewed"
	CampaignRevoked   = "revoked"
	// Only companions get these lines. CampaignChanged reports that another agent leads, or none.
	// CampaignReloaded reports that the agent has read its configuration again.
	CampaignChanged  = "changed"
	CampaignReloaded = "reloaded"
)

// ResumeRequest is the body of POST /v1/campaigns/ID/resume.
type ResumeRequest struct {
	// Term is the newest term that the agent sent to the program.
	Term uint64 `json:"term"`
	// Meta replaces the program's description of itself; at most 256 bytes.
	Meta string `json:"meta,omitempty"`
}

// StoppedRequest is the body of POST /v1/campaigns/ID/stopped.
type StoppedRequest struct {
	// Term is the term under which the program has stopped acting. If it is 0, the receipt counts for the
	// oldest term that has no receipt yet.
	Term uint64 `json:"term,omitempty"`
	// Election is the election in which a companion has stopped. A candidate need not give it.
	Election string `json:"election,omitempty"`
	// Reason is one line for people: why a program that was not asked to stop gives up the lead. The
	// agent shows at most 200 bytes of it.
	Reason string `json:"reason,omitempty"`
}

// Campaigns answers GET /v1/campaigns.
type Campaigns struct {
	Campaigns []Campaign `json:"campaigns"`
}

// Campaign is a program of this host that is a candidate or a companion.
type Campaign struct {
	// Campaign is its ID. Only the program's user, root and the agent's user see it.
	Campaign string    `json:"campaign,omitempty"`
	Election string    `json:"election"`
	Priority int       `json:"priority"`
	Role     string    `json:"role,omitempty"` // RoleCompanion; empty for a candidate
	Meta     string    `json:"meta,omitempty"`
	PID      int       `json:"pid"` // the process that connected; 0: unknown
	UID      int       `json:"uid"`
	Since    time.Time `json:"since"`
	// Term is the term under which the program acts, or must still stop acting; 0: none.
	Term uint64 `json:"term,omitempty"`
}
