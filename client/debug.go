package client

import (
	"context"
	"net/http"
	"time"

	"github.com/doyen-election/doyen/api"
)

// SetLogLevel sets the level of the agent's log for a while: POST /v1/log-level.
func (c *Client) SetLogLevel(ctx context.Context, level string, limit time.Duration) (api.LogLevel, error) {
	return call[api.LogLevel](ctx, c, http.MethodPost, "/v1/log-level", api.LogLevelRequest{Level: level, ForMS: limit.Milliseconds()})
}

// Get returns the body of an answer as it came, in whatever format: of /metrics, /v1/debug/log.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	body, _, err := c.read(ctx, path)
	return body, err
}

// AgentsBack asks every agent about itself, and has each other one try the ports of the agent
// that is asked.
func (c *Client) AgentsBack(ctx context.Context) ([]api.AgentReport, error) {
	all, err := call[api.Agents](ctx, c, http.MethodGet, "/v1/agents?dial=back", nil)
	return all.Agents, err
}
