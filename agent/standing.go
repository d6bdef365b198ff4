package agent

import (
	"fmt"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

// drainedLong is after how long there is a warning about a drain that was probably forgotten.
const drainedLong = 24 * time.Hour

// drain notifies the other agents that this one is drained, or is not any more.
func (l *loop) drain(on bool) {
	l.draining, l.drainedAt = on, time.Time{}
	if on && l.drained != nil {
		l.drainedAt = l.drained()
	}
	if err := l.gossip.Update(func(m *membership.Member) { m.Draining = on }); err != nil {
		l.logger.Warn("the other agents can't be notified of the drain", "err", err)
	}
}

// standing warns about a long drain, and about elections that should have candidates. Without a
// quorum nobody can lead, which has a warning of its own.
func (l *loop) standing(s *elector.Status) (all []api.Warning) {
	if s.Draining && !l.drainedAt.IsZero() && time.Since(l.drainedAt) >= drainedLong {
		all = append(all, api.Warning{Code: warnDrained, Message: fmt.Sprintf(
			"this agent has been drained since %s and can't be elected: if the maintenance has ended, run doyen drain off", l.drainedAt.UTC().Format("2006-01-02 15:04 UTC"))})
	}
	if s.Quorum.Enabled && !s.Quorum.Exists {
		return all
	}
	for _, name := range l.expected {
		if c, ok := contestOf(s, name); ok && len(c.Candidates) > 0 {
			continue
		}
		all = append(all, api.Warning{Code: warnCandidates, Message: fmt.Sprintf(
			"nobody is a candidate in %s, which this agent's configuration expects: start an agent or a program that may lead it, or end a drain (`doyen members` shows who is drained)", name)})
	}
	return all
}
