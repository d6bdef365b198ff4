package client

import (
	"context"
	"net/http"

	"github.com/doyen-election/doyen/api"
)

// Drills asks every agent what a drill of the election rests on, and what it has seen of one.
func (c *Client) Drills(ctx context.Context, election string) ([]api.DrillView, error) {
	answer, err := call[api.Drills](ctx, c, http.MethodGet, electionPath(election, "/drill"), nil)
	return answer.Agents, err
}

// Drill has the election's leader hand over, or stop and start again. It returns before a stop:
// see api.DrillDelay.
func (c *Client) Drill(ctx context.Context, election string, r api.DrillRequest) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, electionPath(election, "/drill"), r)
}
