package guard

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// command is one run of a command, as its guard sees it.
//
// Invariant: once why is set, the command is being ended for that reason. Once killing is
// set, SIGKILL is repeated until nothing is left.
type command struct {
	order Order
	pid   int // 0: it is not known yet, since the exec has not ended
	group int // its own process group; 0: it shares another's, or has none yet
	kept  int // copy of the campaign's connection; -1: none
	term  uint64

	schedule Schedule
	killAt   int64 // when an order wants SIGKILL
	termAt   int64 // when an order wants SIGTERM, beside another signal
	why      string
	told     map[int]bool // see askFamily
	killing  int64        // since when it is being killed; 0: it is not
	stuck    bool         // it was reported that killing does not help

	ended  bool // the command itself; descendants may be left
	others bool
	status int
	first  struct{ pid, status int } // the child that ended last while pid was not known: perhaps the command
}

// keep holds a copy of the connection to the agent: the candidacy lasts as long as anybody holds one.
// A command that has started already can't be given a copy of a new connection: then the candidacy
// ends with the guard and its parent.
func (c *command) keep(files []int, how int) {
	if len(files) == 0 {
		return
	}
	if kept, err := unix.FcntlInt(uintptr(files[0]), how, keepFrom); err == nil {
		c.drop()
		c.kept = kept
	}
}

// drop closes the copy of the connection.
func (c *command) drop() {
	if c.kept >= 0 {
		syscall.Close(c.kept)
		c.kept = -1
	}
}

// stop begins to end the command as the parent orders.
func (c *command) stop(o Order) {
	if c.why == "" {
		c.why = ByOrder
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

// reaped takes the end of a child.
func (c *command) reaped(pid, status int) {
	switch {
	case c.pid == 0:
		c.first.pid, c.first.status = pid, status
	case c.pid == pid && !c.ended:
		c.end(status)
	}
}

// end takes the end of the command itself.
func (c *command) end(status int) {
	c.ended, c.status = true, status
	if c.why == "" {
		c.why = ByItself
	}
}

// pass sends the command a signal that does not end the run. Descendants don't get it:
// most programs die of a signal that they do not expect.
func (c *command) pass(signal syscall.Signal) {
	if c.pid > 0 && !c.ended {
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

// enforce does what is due while the command or a descendant of it is left. If killing does not
// help, enforce returns once why.
func (c *command) enforce(now int64) (fault string) {
	if c.ended && !c.others {
		c.others = true
		c.killAt = min(c.killAt, now+int64(c.order.Grace))
		askFamily(c.held(), syscall.SIGTERM, c.told)
	}
	if c.why == "" && now >= c.schedule.TermAt {
		c.why = ByLease
		askFamily(c.held(), syscall.SIGTERM, c.told)
	}
	if now >= c.termAt {
		c.termAt, c.told = never, map[int]bool{}
		askFamily(c.held(), syscall.SIGTERM, c.told)
	}
	if now < min(c.killAt, c.schedule.KillAt) {
		return ""
	}
	if c.killing == 0 {
		c.killing = now
		if c.why == "" {
			c.why = ByOrder // the parent is gone
		}
		if group := c.held(); group > 0 { // nearly always that kills all; the next step checks
			killGroup(group)
			return ""
		}
	}
	err := KillFamily(c.held())
	if c.stuck || now-c.killing < int64(StuckAfter) {
		return ""
	}
	c.stuck = true
	return Blocked(err)
}

// Blocked describes why killing does not help; err is what killing returned.
func Blocked(err error) string {
	if err != nil {
		return "a process can't be killed: " + err.Error()
	}
	return "a process does not exit: it is blocked in the kernel, perhaps by a disk"
}

// next is when enforce has something to do.
func (c *command) next(now int64) int64 {
	switch {
	case c.stuck: // more would only cost the processor
		return now + int64(StuckAfter)
	case c.killing > 0:
		return now + int64(Again)
	}
	due := min(c.killAt, c.schedule.KillAt, c.termAt)
	if c.why == "" {
		due = min(due, c.schedule.TermAt)
	}
	return due
}
