package elector

// The clock may count a suspend as a second too short or too long, if the host measures it
// with a clock of whole seconds. Then a lease that has expired looks valid, or a promise
// that still holds looks expired. So no deadline from before a suspend counts after it.

// suspended ends every lease this agent counts, its own and those of the leaders it
// follows, and every bid. Its voter holds what it promised as after a start.
func (e *Elector) suspended() {
	e.resumed = e.now
	e.voter.Suspended(e.now)
	if d := e.change.driver; d != nil {
		d.Recount()
		e.change.resendAt = e.now
	}
	e.touchAll()
	for _, c := range e.contests.rows {
		e.carry(c, c.Suspended(c))
	}
}
