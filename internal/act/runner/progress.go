package runner

import (
	"bytes"
	"os"
	"time"

	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// maxNotices is how many of the command's notices are read at once.
const maxNotices = 64

// progress is what the present run of the command reports by sd_notify's protocol.
type progress struct {
	notices *notices // nil: no notices are expected
	ready   bool     // the command acts, since it has sent READY=1 or does not have to
	dueAt   int64    // when the next notice is due; never: none is expected
}

// expect prepares for a run of the command, and returns the name of the socket for its notices.
// Each run has a new socket, so that notices of an earlier run do not count.
func (r *runner) expect(now int64) (name string, err error) {
	r.expectNothing()
	if !r.notifies() {
		return "", nil
	}
	n, err := newNotices()
	if err != nil {
		return "", err
	}
	r.progress = progress{notices: n, ready: !r.Ready}
	r.progress.alive(now, r.silence())
	go n.listen(r.ctx.Done(), r.noticed)
	return n.name, nil
}

// notifies reports whether the command gets a NOTIFY_SOCKET.
func (c *Config) notifies() bool { return c.Ready || c.Watchdog > 0 }

func (r *runner) expectNothing() {
	if r.progress.notices != nil {
		r.progress.notices.close()
	}
	r.progress = progress{dueAt: never}
}

// heed reads the notices that have arrived.
func (r *runner) heed(now int64) {
	p := &r.progress
	for range maxNotices {
		text, sender, ok := p.notices.next()
		if !ok {
			return
		}
		if r.state == idle || r.state == stopping || !r.ofCommand(sender) {
			continue
		}
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			switch string(line) {
			case "READY=1":
				if !p.ready {
					p.ready = true
					p.alive(now, r.silence())
					r.say("%s is ready: leading %s, term %d", r.name(), r.Election, r.term)
				}
			case "WATCHDOG=1":
				if p.ready {
					p.alive(now, r.silence())
				}
			case "WATCHDOG=trigger":
				r.handOver(r.name()+" reported by WATCHDOG=trigger that it fails", standBack)
				return
			}
		}
	}
}

// alive starts the wait for the next notice, which may take as long as silence; 0: for ever.
func (p *progress) alive(now int64, silence time.Duration) {
	if p.dueAt = never; silence > 0 {
		p.dueAt = now + int64(silence)
	}
}

// watch hands over when the command has been silent for too long. A time in which this process did not run does
// not count: the command may not have run either.
func (r *runner) watch(now int64) {
	p := &r.progress
	if now < p.dueAt || r.state != starting && r.state != running {
		return
	}
	r.heed(now)
	if now < p.dueAt {
		return
	}
	if _, own := r.stoodStill(now); own {
		p.alive(now, r.silence())
		return
	}
	what := "WATCHDOG=1"
	if !p.ready {
		what = "READY=1"
	}
	r.handOver(r.name()+" sent no "+what+" for "+r.silence().String(), standBack)
}

// silence is how long the command may send no notice.
func (r *runner) silence() time.Duration {
	if r.progress.ready {
		return r.Watchdog
	}
	return r.ReadyIn
}

// handOver ends a leadership because of a problem on this host: first the command is stopped, then
// the receipt lets other hosts lead. After that, this host is not a candidate for the given time.
func (r *runner) handOver(why string, wait time.Duration) {
	r.progress.dueAt = never
	if !r.leading || r.ending {
		return
	}
	r.over, r.why = true, why
	r.lose(why, false)
	r.notBefore = alarm.Now() + int64(wait)
}

// ofCommand reports whether a process of the command sent a notice. A sender that has already ended, as
// systemd-notify does at once, is accepted if it ran as this user.
func (r *runner) ofCommand(s sender) bool {
	for pid := s.pid; pid > 1; {
		parent, ok := guard.ParentOf(pid)
		switch {
		case !ok:
			return s.uid == os.Geteuid()
		case parent == r.guard.PID:
			return true
		}
		pid = parent
	}
	return false
}

// sender is the process that sent a notice, as the kernel reports it.
type sender struct{ pid, uid int }

// notifyVariables belong to sd_notify's protocol. In this process they name its service manager's socket, to
// which the command must not write.
var notifyVariables = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}
