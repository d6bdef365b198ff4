package runner

import (
	"syscall"
	"time"
)

// command is one run of the command, as its guard sees it.
//
// Invariant: once why is set, the command is being ended for that reason. Once killing is
// set, SIGKILL is repeated until nothing is left.
type command struct {
	pid   int
	group int // its own process group; 0: it shares the runner's
	kept  int // copy of the campaign's connection; -1: none
	// What a receipt is given for.
	campaign string
	term     uint64

	grace time.Duration

	schedule schedule
	killAt   int64 // when an order wants SIGKILL
	termAt   int64 // when an order wants SIGTERM, beside another signal
	why      string
	told     map[int]bool // see askFamily
	killing  int64        // since when it is being killed; 0: it is not
	stuck    bool         // it was reported that killing does not help

	ended  bool // the command itself; descendants may be left
	others bool
	status int
}

// stop begins to end the command as the runner orders.
func (c *command) stop(o order) {
	if c.why == "" {
		c.why = byOrder
	}
	c.killAt, c.termAt = min(c.killAt, o.KillAt), never
	switch {
	case o.Signal != 0:
		c.told = map[int]bool{}
		askFamily(c.held(), syscall.Signal(o.Signal), c.told)
	case o.TermAt > 0:
		c.termAt = o.TermAt
	}
}

// end takes the end of the command itself.
func (c *command) end(status int) {
	c.ended, c.status = true, status
	if c.why == "" {
		c.why = byItself
	}
}

// pass sends the command a signal that does not end the run. Descendants don't get it:
// most programs die of a signal that they do not expect.
func (c *command) pass(signal syscall.Signal) {
	if !c.ended {
		_ = syscall.Kill(c.pid, signal)
	}
}

// held returns the process group, or 0 if it may not be the command's any more: once no
// process is left in a group, another group may get its number.
func (c *command) held() int {
	if c.ended && !inhabited(c.group) {
		return 0
	}
	return c.group
}

// enforce does what is due while the command or a descendant of it is left. killAll is one
// more way to kill them. If killing does not help, enforce returns once why.
func (c *command) enforce(now int64, killAll func()) (fault string) {
	if c.ended && !c.others {
		c.others = true
		c.killAt = min(c.killAt, now+int64(c.grace))
		askFamily(c.held(), syscall.SIGTERM, c.told)
	}
	if c.why == "" && now >= c.schedule.TermAt {
		c.why = byLease
		askFamily(c.held(), syscall.SIGTERM, c.told)
	}
	if now >= c.termAt {
		c.termAt, c.told = never, map[int]bool{}
		askFamily(c.held(), syscall.SIGTERM, c.told)
	}
	if now < min(c.killAt, c.schedule.KillAt) {
		return ""
	}
	killAll()
	if c.killing == 0 {
		c.killing = now
		if c.why == "" {
			c.why = byOrder // the runner is gone
		}
		if group := c.held(); group > 0 { // nearly always that kills all; the next step checks
			killGroup(group)
			return ""
		}
	}
	err := killFamily(c.held())
	if c.stuck || now-c.killing < int64(stuckAfter) {
		return ""
	}
	c.stuck = true
	return stuck(err)
}

// stuck describes why killing does not help; err is what killing returned.
func stuck(err error) string {
	if err != nil {
		return "a process can't be killed: " + err.Error()
	}
	return "a process does not exit: it is blocked in the kernel, perhaps by a disk"
}

// next is when enforce has something to do.
func (c *command) next(now int64) int64 {
	if c.killing > 0 {
		return now + int64(again)
	}
	due := min(c.killAt, c.schedule.KillAt, c.termAt)
	if c.why == "" {
		due = min(due, c.schedule.TermAt)
	}
	return due
}
