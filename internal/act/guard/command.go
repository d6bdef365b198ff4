package guard

import (
	"cmp"
	"syscall"

	"golang.org/x/sys/unix"
)

// command is one run of a command, as its guard sees it.
//
// Invariant: if why is set, the command is being ended for that reason. If killing is set, SIGKILL
// is sent again and again until no process is left.
type command struct {
	order Order
	pid   int            // 0: not known yet, since the exec has not ended
	early syscall.Signal // the last signal that came before pid was known, to be passed on then
	group int            // its separate process group; 0: it has none, or none yet
	kept  int            // descriptor of its copy of the campaign's connection; -1: there is none
	term  uint64

	schedule Schedule
	killAt   int64 // when to send SIGKILL, as the parent ordered
	termAt   int64 // when to send SIGTERM after another signal, as the parent ordered
	why      string
	told     map[int]bool // the processes that have got the signal, see askFamily
	killing  int64        // since when the command is being killed; 0: it is not
	stuck    bool         // the parent was notified that killing does not help

	ended  bool // the command itself has ended; descendants may be left
	others bool
	status int
	first  struct{ pid, status int } // the last child that ended while pid was not known: it may be the command
}

// keep stores a copy of the connection to the agent: the candidacy lasts as long as any process has the
// connection open. A running command can't get a copy of a new connection. Then the candidacy ends with the
// guard and its parent.
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

// stop starts to end the command as the parent has ordered.
func (c *command) stop(o Order) {
	c.why = cmp.Or(c.why, ByOrder)
	c.killAt, c.termAt = min(c.killAt, o.KillAt), never
	switch {
	case o.Signal != 0:
		c.told = map[int]bool{}
		askFamily(c.held(), syscall.Signal(o.Signal), c.told)
	case o.TermAt > 0:
		c.termAt = o.TermAt
	}
}

// reaped handles the end of a child.
func (c *command) reaped(pid, status int) {
	switch {
	case c.pid == 0:
		c.first.pid, c.first.status = pid, status
	case c.pid == pid && !c.ended:
		c.end(status)
	}
}

// end handles the end of the command itself.
func (c *command) end(status int) {
	c.ended, c.status = true, status
	c.why = cmp.Or(c.why, ByItself)
}

// pass sends the command a signal that does not end the run. Descendants don't get it:
// most programs die of a signal that they do not expect.
func (c *command) pass(signal syscall.Signal) {
	if c.pid == 0 {
		c.early = signal
	} else if !c.ended {
		_ = syscall.Kill(c.pid, signal)
	}
}

// held returns the process group, or 0 if its number may belong to another group by now, because the group has
// no process left.
func (c *command) held() int {
	if c.ended && !inhabited(c.group) {
		return 0
	}
	return c.group
}

// enforce does what is due while the command or a descendant is left. If killing does not help, it returns the
// reason, once.
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
		c.why = cmp.Or(c.why, ByOrder)    // no reason so far means that the parent has ended
		if group := c.held(); group > 0 { // this nearly always kills all; the next step checks that
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

// Blocked describes why killing does not help. err is the error of the kill.
func Blocked(err error) string {
	if err != nil {
		return "a process can't be killed: " + err.Error()
	}
	return "a process does not exit: it is blocked in the kernel, perhaps by a disk"
}

// next is when enforce has something to do again.
func (c *command) next(now int64) int64 {
	switch {
	case c.stuck: // trying more often would only cost processor time
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
