package runner

import (
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/alarm"
)

// signal passes a signal on, and ends the run if it asks for that.
func (r *runner) signal(s syscall.Signal) {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT:
		r.end(s)
	case syscall.SIGHUP:
		if r.terminal { // it was closed
			r.end(s)
			return
		}
		r.pass(s)
	case syscall.SIGWINCH:
		if !r.terminal { // it sends signals to its whole group
			r.pass(s)
		}
	default:
		r.pass(s)
	}
}

func (r *runner) pass(s syscall.Signal) {
	if r.state == starting || r.state == running {
		r.guard.tell(order{Do: doSignal, Signal: int(s)})
	}
}

// end begins the end of the run; 0 is for one that no signal asked for. The second
// time, nothing is waited for.
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
	o := order{Do: doStop, Signal: int(s), KillAt: min(now+int64(r.Grace), plan(r.until, r.lease).KillAt)}
	switch {
	case r.signals > 1:
		o.KillAt = now
	case s == 0:
		o.Signal = int(syscall.SIGTERM)
	case r.terminal && (s == syscall.SIGINT || s == syscall.SIGQUIT):
		// The terminal has sent it to the command already, and two are often taken for "at
		// once". Somebody else may have sent it to this process alone.
		o.Signal, o.TermAt = 0, now+int64(r.Grace/2)
	}
	if r.state != stopping {
		r.killAt = o.KillAt
	}
	r.state, r.stopped, r.killAt = stopping, now, min(r.killAt, o.KillAt)
	r.guard.tell(o)
}

// reclaim makes the runner's process group the one that its terminal sends signals
// to, if a former group of the command's has ended: else Ctrl-C would reach nobody.
func (r *runner) reclaim() {
	if !r.terminal {
		return
	}
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil || group == r.group || !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // else asking from the background stops who asks
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, r.group) // the terminal may be gone
}

// ending describes how a command ended that was made to.
func ending(name string, got report) string {
	if got.Killed {
		return name + " had to be killed"
	}
	return fmt.Sprintf("%s ended with status %d", name, got.Status)
}
