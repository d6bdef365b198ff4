package client

import (
	"context"
	"net/http"

	"github.com/doyen-election/doyen/api"
)

// Keys returns the cluster keys of this agent, the one in use first, by their
// fingerprints: GET /v1/keys.
func (c *Client) Keys(ctx context.Context) ([]api.Key, error) {
	answer, err := call[api.Keys](ctx, c, http.MethodGet, "/v1/keys", nil)
	return answer.Keys, err
}

// ChangeKeys adds, uses or removes one cluster key on this agent, without a
// restart, and returns the keys after that: POST /v1/keys.
func (c *Client) ChangeKeys(ctx context.Context, r api.KeysRequest) ([]api.Key, error) {
	answer, err := call[api.Keys](ctx, c, http.MethodPost, "/v1/keys", r)
	return answer.Keys, err
}

// RotateKeys gives all agents a new cluster key and drops the others: POST /v1/keys with "rotate".
// Only Without and Force of the request count.
func (c *Client) RotateKeys(ctx context.Context, r api.KeysRequest) (api.Keys, error) {
	return call[api.Keys](ctx, c, http.MethodPost, "/v1/keys", api.KeysRequest{Rotate: true, Without: r.Without, Force: r.Force})
}
