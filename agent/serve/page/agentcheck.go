package page

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
)

const (
	// checkWait is how long an agent check may take to name its election, which it need not do.
	checkWait    = 100 * time.Millisecond
	checkTimeout = time.Second
	maxCheckLine = 80
)

// Check answers HAProxy's agent checks until ctx ends. A check may send the name of an election as
// a line (agent-send); without one it is default. look reports whether this agent leads that
// election, and whether it is drained. How many checks there may be at a time is the listener's.
func Check(ctx context.Context, l net.Listener, logger *slog.Logger, look func(election.Name) (leads, drained bool)) {
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				logger.Debug("agent check", "err", err)
				continue
			}
			go func() {
				defer c.Close()
				check(c, look)
			}()
		}
	}()
}

func check(c net.Conn, look func(election.Name) (leads, drained bool)) {
	now := time.Now()
	if c.SetReadDeadline(now.Add(checkWait)) != nil || c.SetWriteDeadline(now.Add(checkTimeout)) != nil {
		return
	}
	line, buf := "", make([]byte, maxCheckLine)
	for len(line) < maxCheckLine && !strings.Contains(line, "\n") {
		n, err := c.Read(buf[:maxCheckLine-len(line)])
		if line += string(buf[:n]); err != nil {
			break
		}
	}
	name, _, _ := strings.Cut(line, "\n")
	_, _ = io.WriteString(c, verdict(strings.TrimSpace(name), look)+"\n") // the client may have gone
}

// verdict is what HAProxy is to do with the server beside this agent. "ready" takes back a
// former drain or maint.
func verdict(name string, look func(election.Name) (leads, drained bool)) string {
	if name == "" {
		name = string(election.Default)
	}
	if !election.ValidName(name) {
		return "down#not the name of an election"
	}
	switch leads, drained := look(election.Name(name)); {
	case leads:
		return "up ready"
	case drained:
		return "maint"
	}
	return "drain"
}
