package agent

import (
	"cmp"

	"github.com/doyen-election/doyen/election"
)

// lateness is what shows whether this agent is behind. The elector decides what that means.
type lateness struct {
	due          election.Instant // when the loop should be woken; Never: it need not be
	writingSince election.Instant // when the write under way was asked for; Never: there is none
	toldAt       election.Instant // when the elector was last told
}

// doubt tells the elector by how much the timer, the loop or a write is behind, if that is more
// than an eighth of the lease, and no more often than that.
func (l *loop) doubt(now election.Instant) {
	by, worth := max(now.Sub(l.due), now.Sub(l.writingSince)), cmp.Or(l.picture.Load().Status.Roster.Lease(), l.lease)/8
	if by <= worth || now.Sub(l.toldAt) < worth {
		return
	}
	l.toldAt = now
	l.feed(now, election.Late{By: by})
}
