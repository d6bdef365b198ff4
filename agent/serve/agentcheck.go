package serve

import (
	"context"
	"errors"
	"io"
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

// AgentCheck answers HAProxy's agent checks until the server is closed. A check may send the name
// of an election as a line (agent-send); without one it is default.
func (s *Server) AgentCheck(l net.Listener) {
	context.AfterFunc(s.ctx, func() { _ = l.Close() })
	checks := newPlaces(l, maxChecks, maxChecksOf, 0, addressOf)
	go func() {
		for {
			c, err := checks.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				s.Logger.Debug("agent check", "err", err)
				continue
			}
			go func() {
				defer c.Close()
				s.check(c)
			}()
		}
	}()
}

func (s *Server) check(c net.Conn) {
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
	_, _ = io.WriteString(c, s.verdict(strings.TrimSpace(name))+"\n") // the client may have gone
}

// verdict is what HAProxy is to do with the server beside this agent. "ready" takes back a
// former drain or maint.
func (s *Server) verdict(name string) string {
	if name == "" {
		name = string(election.Default)
	}
	if !election.ValidName(name) {
		return "down#not the name of an election"
	}
	p := s.Picture()
	c, _ := p.contest(election.Name(name))
	switch {
	case p.Election(c, s.Clock(), 0).IsLeader:
		return "up ready"
	case p.Status.Draining:
		return "maint"
	}
	return "drain"
}
