package api

import "time"

// CampaignRequest is the body of POST /v1/elections/NAME/campaign.
type CampaignRequest struct {
	// Meta is the program's description of itself, shown beside its candidacy; at most
	// 256 bytes.
	Meta string `json:"meta,omitempty"`
	// Priority replaces the agent's priority for this candidacy; 0 never leads.
	Priority *int `json:"priority,omitempty"`
	// Proof is false if the process that connects is not the one that acts, such as
	// curl in a script. Then its end proves nothing, and only a receipt ends a term
	// before its lease.
	Proof *bool `json:"proof,omitempty"`
	// Role is RoleCandidate or empty, or RoleCompanion.
	Role string `json:"role,omitempty"`
	// Companion is what a companion begins with, only with RoleCompanion; nil: it acts in the election
	// of the path.
	Companion *Companion `json:"companion,omitempty"`
}

// The roles of a campaign. A companion is never a candidate: it acts beside what leads on this
// host, and the term is released only once it has stopped too.
const (
	RoleCandidate = "candidate"
	RoleCompanion = "companion"
)

// EveryElection stands for all elections: in the path of a companion's campaign, among its
// elections for those that no companion names, and among its checks for the whole host.
const EveryElection = "*"

// Companion is what a companion reports of itself, as a whole: with its campaign, and later by
// POST /v1/campaigns/ID/companion.
type Companion struct {
	// Elections are those in which it acts; EveryElection stands for those that no companion
	// names.
	Elections []string `json:"elections,omitempty"`
	// Checks are its health checks, by election; that of EveryElection counts in every one.
	Checks map[string]Check `json:"checks,omitempty"`
	// Failed is why what it ran for a leadership has failed, by election.
	Failed map[string]string `json:"failed,omitempty"`
	// Holds are the terms under which it acts, by election. They count with its campaign only: a
	// companion that the agent lost goes on in the same term, if its deadline has not passed.
	Holds map[string]uint64 `json:"holds,omitempty"`
}

// Check is the outcome of a health check.
type Check struct {
	// Able is whether the host may lead. Without Able and Reason, there is no outcome yet.
	Able   bool   `json:"able"`
	Reason string `json:"reason,omitempty"` // why not, for people
}

// CampaignEvent is one line of a campaign. The first is `candidate`. Then come `elected`,
// `renewed` each time the lease is prolonged, and `revoked`. After that, and its receipt,
// the same candidacy may be elected again.
type CampaignEvent struct {
	Type     string `json:"type"`
	Campaign string `json:"campaign"` // for POST /v1/campaigns/ID/stopped
	Election string `json:"election"`
	// Term is the fencing token; 0 in a candidate line. A renewed line with a
	// higher term than the one before carries a new token.
	Term uint64 `json:"term,omitempty"`
	// ValidUntilBoottimeNS, of elected and renewed: the program may act until then, and not
	// one nanosecond longer, unless a later line prolongs it.
	ValidUntilBoottimeNS int64 `json:"valid_until_boottime_ns,omitempty"`
	// Authority, of elected and renewed, is AuthorityView if the agents run without a
	// quorum: another program may have been elected as well. Empty means
	// AuthorityLease.
	Authority string `json:"authority,omitempty"`
	// StopByBoottimeNS, of revoked: the program must have stopped by then.
	StopByBoottimeNS int64  `json:"stop_by_boottime_ns,omitempty"`
	Reason           string `json:"reason,omitempty"` // of revoked
	// Change, for a companion, is what its watch would show: with elected, revoked, and changed.
	Change *Change `json:"change,omitempty"`
}

// The types of a campaign's lines.
const (
	CampaignCandidate = "candidate"
	CampaignElected   = "elected"
	CampaignRenewed   = "renewed"
	CampaignRevoked   = "revoked"
	// A companion alone is sent these: that another agent leads, or nobody, and that the agent has
	// read its configuration again.
	CampaignChanged  = "changed"
	CampaignReloaded = "reloaded"
)

// ResumeRequest is the body of POST /v1/campaigns/ID/resume.
type ResumeRequest struct {
	// Term is the newest one that the program was sent.
	Term uint64 `json:"term"`
	// Meta replaces the program's word about itself; at most 256 bytes.
	Meta string `json:"meta,omitempty"`
}

// StoppedRequest is the body of POST /v1/campaigns/ID/stopped.
type StoppedRequest struct {
	// Term is the one under which the program has stopped acting. Without it, the
	// receipt counts for the oldest term that still lacks one.
	Term uint64 `json:"term,omitempty"`
	// Election is the one in which a companion has stopped; a candidate has only one.
	Election string `json:"election,omitempty"`
	// Reason is why a program that was not asked to stop gives up the lead, in one line for
	// people. The agent shows at most 200 bytes of it.
	Reason string `json:"reason,omitempty"`
}

// Campaigns answers GET /v1/campaigns.
type Campaigns struct {
	Campaigns []Campaign `json:"campaigns"`
}

// Campaign is a program of this host that is a candidate.
type Campaign struct {
	// Campaign is its ID. Only its own user, root and the agent's user see it.
	Campaign string    `json:"campaign,omitempty"`
	Election string    `json:"election"`
	Priority int       `json:"priority"`
	Role     string    `json:"role,omitempty"` // RoleCompanion; empty for a candidate
	Meta     string    `json:"meta,omitempty"`
	PID      int       `json:"pid"` // of the process that connected; 0: not known
	UID      int       `json:"uid"`
	Since    time.Time `json:"since"`
	// Term is the one under which it acts, or has yet to stop; 0: none.
	Term uint64 `json:"term,omitempty"`
}
