// Package agent is the daemon.
package agent

import (
	"context"
	"errors"
	"io"
)

// Version is this build's.
const Version = "0.1.0"

// Run runs an agent until ctx is cancelled, and then hands over what it leads.
func Run(ctx context.Context, cfg Config, stderr io.Writer) error {
	_, _, _ = ctx, cfg, stderr
	return errors.New("run agent: not built yet")
}
