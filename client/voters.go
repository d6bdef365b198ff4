package client

import (
	"context"
	"net/http"

	"github.com/doyen-election/doyen/api"
)

// Voters returns the roster: GET /v1/voters.
func (c *Client) Voters(ctx context.Context) (api.Voters, error) {
	return call[api.Voters](ctx, c, http.MethodGet, "/v1/voters", nil)
}

// ChangeVoters adds, removes or replaces one voter, cancels a change or restores what was
// held. It waits until the new roster is confirmed, which takes a little more than a lease.
// The agent asked must be a voter.
func (c *Client) ChangeVoters(ctx context.Context, r api.VotersRequest) (api.Voters, error) {
	return call[api.Voters](ctx, c, http.MethodPost, "/v1/voters", r)
}
