package elector

// A suspend is counted by the clock only as well as the host can tell its length:
// by a clock of whole seconds it may be counted as a second too short or too long.
// Too short, and a lease looks as if it still ran. Too long, and a voter's promise,
// or a driver's wait for promises, looks as if it had ended. So nothing that was
// counted on this agent's clock before a suspend counts after it.

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
