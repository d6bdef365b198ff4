package transport

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// libp2p takes a listener that is closed before it first accepts for a fault. An
// agent whose gossip port is taken closes it so, and says in one line why it stops.
func TestOwnCloseOfAListenerIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(warnings{slog.NewTextHandler(&log, nil)}).With("part", "transport")
	logger.Error("swarm listener accept error", "addr", "/ip4/127.0.0.1/tcp/1", "err", errors.New("listener closed"))
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
	logger.Error("swarm listener accept error", "addr", "/ip4/127.0.0.1/tcp/1", "err", errors.New("too many open files"))
	logger.Error("another fault", "err", errors.New("listener closed"))
	if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "too many open files") || !strings.Contains(got, "another fault") {
		t.Errorf("logged: %s", got)
	}
}
