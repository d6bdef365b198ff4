package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/doyen-election/doyen/api"
)

// Settings returns what all agents of the cluster agree on: GET /v1/settings.
func (c *Client) Settings(ctx context.Context) (api.Settings, error) {
	return call[api.Settings](ctx, c, http.MethodGet, "/v1/settings", nil)
}

// ChangeSettings changes settings of the whole cluster, and waits until a majority has them. A
// change of the lease waits a lease more. The agent asked must be a voter.
func (c *Client) ChangeSettings(ctx context.Context, r api.SettingsRequest) (api.Settings, error) {
	return call[api.Settings](ctx, c, http.MethodPost, "/v1/settings", r)
}

// Allow changes who may lead the election, in the whole cluster.
func (c *Client) Allow(ctx context.Context, election string, r api.AllowRequest) (api.Settings, error) {
	return call[api.Settings](ctx, c, http.MethodPost, "/v1/elections/"+url.PathEscape(election)+"/allow", r)
}
