package simulation

import (
	"cmp"

	"github.com/doyen-election/doyen/election"
)

// lateness is what shows whether an agent is behind, by its own clock, as its loop keeps it.
type lateness struct {
	due     election.Instant // when it wants to wake; Never: it need not, or it is not known
	writing election.Instant // when the write under way was asked for; Never: there is none
	told    election.Instant // when the elector was last told
}

// doubt reports to an agent by how much it is behind, as its loop does.
func (w *world) doubt(a *agent, in election.Input) {
	l := &a.late
	switch in.(type) {
	case election.Suspended:
		return // its host's loop says this first
	case election.Persisted, election.PersistFailed:
		defer func() { l.writing = election.Never }()
	}
	now, worth := a.clock.at(w.Now), cmp.Or(a.disk.state.Roster.Lease(), a.settings.timing.Lease)/8
	by := max(now.Sub(l.due), now.Sub(l.writing))
	if !a.alive || by <= worth || now.Sub(l.told) < worth {
		return
	}
	l.told = now
	w.step(a, election.Late{By: by})
}
