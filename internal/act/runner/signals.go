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

// signal passes a signal on, and ends the run if it asks for that.
func (r *runner) signal(s syscall.Signal) {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT:
		r.end(s)
	case syscall.SIGHUP:
		if r.terminal { // the terminal was closed
			r.end(s)
			return
		}
		r.pass(s)
	case syscall.SIGWINCH:
		if !r.terminal { // a terminal sends it to its whole group
			r.pass(s)
		}
	default:
		r.pass(s)
	}
}

func (r *runner) pass(s syscall.Signal) {
	if r.state == starting || r.state == running {
		r.guard.Tell(guard.Order{Do: guard.Signal, Signal: int(s)})
	}
}

// end begins the end of the run; s is 0 if no signal asked for it. The second call does not
// wait for the command.
func (r *runner) end(s syscall.Signal) {
	now := alarm.Now()
	r.signals++
	if !r.ending {
		r.ending = true
		if r.Status && s != 0 {
			r.status = 128 + int(s) // unless the command's own follows
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
		// The terminal has sent the signal to the command too, and many programs take a second
		// one for "at once". But perhaps only this process got it: so SIGTERM follows later.
		o.Signal, o.TermAt = 0, now+int64(r.Grace/2)
	}
	if r.state != stopping {
		r.killAt = o.KillAt
	}
	r.state, r.stopped, r.killAt = stopping, now, min(r.killAt, o.KillAt)
	r.guard.Tell(o)
}

// reclaim makes the runner's process group the one to which the terminal sends signals, if
// the group that had them has ended: else Ctrl-C would reach nobody.
func (r *runner) reclaim() {
	if !r.terminal {
		return
	}
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil || group == r.group || !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // the kernel would stop a background process that sets the group
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, r.group) // the terminal may be gone
}

// ending describes the end of a command that was made to end.
func ending(name string, got guard.Report) string {
	if got.Killed {
		return name + " had to be killed"
	}
	return fmt.Sprintf("%s ended with status %d", name, got.Status)
}
