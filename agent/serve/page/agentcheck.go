package page

import (
	"bufio"
	"cmp"
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
	// checkWait is how long an agent check may take to name its election. The name is optional.
	checkWait    = 100 * time.Millisecond
	checkTimeout = time.Second
	maxCheckLine = 80
)

// Check answers HAProxy's agent checks until ctx ends. A check may send the name of an election as a line
// (agent-send); without a name, the election is default. look reports whether this agent leads that election,
// and whether it is drained. The listener has to bound how many checks there are at a time.
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
	line, _ := bufio.NewReader(io.LimitReader(c, maxCheckLine)).ReadString('\n') // when the deadline passes, the line is what has come by then
	_, _ = io.WriteString(c, verdict(strings.TrimSpace(line), look)+"\n")        // the client may have gone
}

// verdict is what HAProxy should do with the server beside this agent. "ready" ends an earlier drain
// or maint.
func verdict(name string, look func(election.Name) (leads, drained bool)) string {
	if name = cmp.Or(name, string(election.Default)); !election.ValidName(name) {
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
