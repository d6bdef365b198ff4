package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/doyen-election/doyen/api"
)

// History returns the newest changes of leadership that the agent saw, the
// newest last: GET /v1/history. An empty election means all elections, and a limit of 0 the
// agent's own limit.
func (c *Client) History(ctx context.Context, election string, limit int) ([]api.Transition, error) {
	query := url.Values{}
	if election != "" {
		query.Set("election", election)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	path := "/v1/history"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	answer, err := call[api.History](ctx, c, http.MethodGet, path, nil)
	return answer.History, err
}
