package api

// CampaignRequest is the body of POST /v1/elections/NAME/campaign.
type CampaignRequest struct {
	// Meta is the program's own word about itself, shown beside its candidacy;
	// at most 256 bytes.
	Meta string `json:"meta,omitempty"`
	// Priority replaces the agent's own for this candidacy; 0 never leads.
	Priority *int `json:"priority,omitempty"`
}

// CampaignEvent is one line of a campaign: first `candidate`, then `elected`,
// `renewed` while the lease is prolonged, and `revoked`, after which the same
// candidacy may be elected again once it has given its receipt.
type CampaignEvent struct {
	Type     string `json:"type"`
	Campaign string `json:"campaign"` // for POST /v1/campaigns/ID/stopped
	Election string `json:"election"`
	// Term is the fencing token; 0 in a candidate line. A renewed line with a
	// higher term than the one before carries a new token.
	Term uint64 `json:"term,omitempty"`
	// ValidUntilBoottimeNS, of elected and renewed: the program may act until
	// then, and not one nanosecond longer, unless a later line says so.
	ValidUntilBoottimeNS int64 `json:"valid_until_boottime_ns,omitempty"`
	// StopByBoottimeNS, of revoked: the program must have stopped by then.
	StopByBoottimeNS int64  `json:"stop_by_boottime_ns,omitempty"`
	Reason           string `json:"reason,omitempty"` // of revoked
}

// The types of a campaign's lines.
const (
	CampaignCandidate = "candidate"
	CampaignElected   = "elected"
	CampaignRenewed   = "renewed"
	CampaignRevoked   = "revoked"
)
