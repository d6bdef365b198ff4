package runner

import (
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// signal passes a signal on to the command, and ends Run if the signal asks for that.
func (r *runner) signal(s syscall.Signal) {
	switch {
	case s == syscall.SIGINT, s == syscall.SIGTERM, s == syscall.SIGQUIT, s == syscall.SIGHUP && r.terminal: // SIGHUP: the terminal was closed
		r.end(s)
	case s == syscall.SIGWINCH && r.terminal: // the terminal has sent it to the command too
	default:
		r.pass(s)
	}
}

func (r *runner) pass(s syscall.Signal) {
	if r.state == starting || r.state == running {
		r.guard.Tell(guard.Order{Do: guard.Signal, Signal: int(s)})
	}
}

// end starts the end of Run. s is the signal that asked for it; 0: none did. A second call kills
// the command at once.
func (r *runner) end(s syscall.Signal) {
	now := alarm.Now()
	r.signals++
	if !r.ending {
		r.ending = true
		if r.Status && s != 0 {
			r.status = 128 + int(s) // if the command ends, its status replaces this
		}
	}
	if r.state == idle {
		return
	}
	o := guard.Order{Do: guard.Stop, Signal: int(s), KillAt: min(now+int64(r.Grace), guard.Plan(r.until, r.lease).KillAt)}
	switch {
	case r.signals > 1:
		o.KillAt = now
	case s == 0:
		o.Signal = int(syscall.SIGTERM)
	case r.terminal && (s == syscall.SIGINT || s == syscall.SIGQUIT):
		// The terminal has sent the signal to the command too, and many programs treat a second one as "at once".
		// But perhaps only this process got it, so SIGTERM follows later.
		o.Signal, o.TermAt = 0, now+int64(r.Grace/2)
	}
	if r.state != stopping {
		r.killAt = o.KillAt
	}
	r.state, r.stopped, r.killAt = stopping, now, min(r.killAt, o.KillAt)
	r.guard.Tell(o)
}

// reclaim makes the runner's group the foreground group if the former one has ended: otherwise Ctrl-C would
// reach no process.
func (r *runner) reclaim() {
	if !r.terminal {
		return
	}
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil || group == r.group || !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // otherwise the kernel would stop a background process that sets the group
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, r.group) // the terminal may have closed
}

// ending describes how a command that was made to end has ended.
func ending(name string, got guard.Report) string {
	if got.Killed {
		return name + " had to be killed"
	}
	return fmt.Sprintf("%s ended with status %d", name, got.Status)
}
