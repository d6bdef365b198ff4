package runner

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/jobs"
)

// hear handles a line of the agent, or the end of the lines.
func (r *runner) hear(e api.CampaignEvent, err error) {
	now := alarm.Now()
	switch {
	case err != nil && r.leading && !r.view && broken(err):
		r.resuming = true
		go func(from *client.Candidacy) {
			err := from.Resume(r.ctx)
			r.call(func() {
				if from == r.candidacy && !r.over {
					r.resume(err)
				}
			})
		}(r.candidacy)
	case err != nil:
		r.cutOff(err)
	case e.Type == api.CampaignElected, e.Type == api.CampaignRenewed && (r.leading || e.Term == r.late):
		r.lead(e, now)
	case e.Type == api.CampaignRevoked && r.leading:
		r.until = min(r.until, e.StopByBoottimeNS)
		r.lose(e.Reason, true)
	case e.Type == api.CampaignRevoked && r.late > 0:
		// The candidacy was elected and revoked while this process did not run.
		r.owed, r.revoked, r.until, r.late = true, true, e.StopByBoottimeNS, 0
	}
}

// broken reports whether the connection broke, as when the agent dies: the agent has not ended the candidacy.
func broken(err error) bool {
	_, unreachable := errors.AsType[*client.UnreachableError](err)
	return unreachable
}

// cutOff handles the final end of the candidacy's lines.
func (r *runner) cutOff(err error) {
	r.over = true
	if r.leading {
		r.lose("the connection to the agent has ended: "+err.Error(), false)
	} else {
		r.say("the connection to the agent has ended: %v", err)
	}
}

// resume handles the outcome of resuming the candidacy. Meanwhile the command runs on under its last deadline.
func (r *runner) resume(err error) {
	r.resuming = false
	if err != nil {
		r.cutOff(err)
		return
	}
	r.back = true
	go r.listen(r.candidacy)
	if r.state != idle {
		if err := r.guard.Send(guard.Order{Do: guard.Keep}, r.candidacy); err != nil {
			r.loseGuard()
		}
	}
}

// lead handles an elected or a renewed line, which has a deadline.
func (r *runner) lead(e api.CampaignEvent, now int64) {
	left := time.Duration(e.ValidUntilBoottimeNS - now)
	if e.Type == api.CampaignElected {
		r.given = e.Word
	}
	if !r.leading && left <= 0 {
		r.late = e.Term
		return
	}
	began := !r.leading
	r.view = e.Authority == api.AuthorityView
	if r.back {
		r.back = false
		r.say("the agent was started again: still leading %s, term %d", r.Election, e.Term)
	} else if r.leading && e.Term != r.term {
		r.say("still leading %s, now under term %d", r.Election, e.Term)
	}
	if !r.leading {
		r.leading, r.owed, r.revoked, r.lease, r.late, r.explained = true, true, false, 0, 0, ""
	}
	r.term, r.until, r.lease = e.Term, e.ValidUntilBoottimeNS, max(r.lease, left)
	r.begin(r.given, began)
	if r.state != idle {
		r.guard.Tell(guard.Order{Do: guard.Lease, Term: r.term, Schedule: guard.Plan(r.until, r.lease)})
	}
}

func (r *runner) lose(reason string, revoked bool) {
	r.leading, r.revoked, r.back = false, revoked, false
	r.forget()
	what := "nothing was running"
	if r.state != idle {
		what = "stopping " + r.name()
	}
	r.say("no longer leading %s (%s): %s", r.Election, reason, what)
}

// forget resets the count of the command's ends, since each leadership counts from 0.
func (r *runner) forget() { r.ends, r.notBefore = 0, 0 }

// learn handles a report of the guard. If ok is false, the guard has ended.
func (r *runner) learn(got guard.Report, ok bool) {
	switch {
	case !ok:
		r.replaceGuard()
	case got.Kind == guard.Ready:
		r.ready = true
		r.guard.Prepare()
	case got.Kind == guard.Started && r.state == starting:
		r.state = running
		if r.task != nil {
			r.task.due = nil
		}
	case got.Kind == guard.Stuck:
		r.say("%s; a successor waits for the lease to end", got.Why)
	case got.Kind == guard.Failed:
		r.state = idle
		r.say("can't start %s: %s", r.name(), got.Why)
		r.ended(lookStatus(syscall.Errno(got.Errno)))
	case got.Kind == guard.Gone:
		r.state = idle
		r.reclaim()
		r.gone(got)
		r.expectNothing()
	}
}

// gone handles the end of the command with all its descendants.
func (r *runner) gone(got guard.Report) {
	if got.Others && got.Why == guard.ByItself {
		r.say("%s left processes running when it ended: stopping them", r.name())
	}
	if r.timedOut && got.Why != guard.ByItself && got.Why != guard.ByLease {
		r.say("%s", ending(r.name(), got))
		r.ended(StatusTimeout)
		return
	}
	switch got.Why {
	case guard.ByItself:
		r.ended(got.Status)
	case guard.ByLease:
		r.leading, r.over = false, true
		r.forget()
		r.say("the lease of %s was about to end and nobody renewed it: %s", r.Election, ending(r.name(), got))
		r.interrupted(got.Status)
	case guard.TooLate:
		r.say("the lease of %s was about to end before %s was started", r.Election, r.name())
		r.unstarted()
	default:
		r.say("%s", ending(r.name(), got))
		r.interrupted(got.Status)
	}
}

// interrupted continues after the end of a command that was made to end. With RestartNever the command is not
// started again even if this host leads again: nobody knows how much it has done.
func (r *runner) interrupted(status int) {
	if r.task != nil {
		r.marked(jobs.Stopped, status)
		return
	}
	if r.Status {
		r.status = status
	}
	if r.Restart == RestartNever && !r.ending {
		r.say("%s is not started again: it should run only once", r.name())
		r.ending, r.status = true, status
	}
}

// ended handles a command that ended by itself, took longer than Timeout, lost its guard or did not start.
func (r *runner) ended(status int) {
	switch {
	case r.task != nil && status == StatusTimeout && r.Timeout > 0:
		r.marked(jobs.TimedOut, status)
	case r.task != nil:
		r.marked(jobs.Finished, status)
	case r.ending && r.Status:
		r.status = status
	case r.ending:
	case r.Restart == RestartNever, r.Restart == RestartOnFailure && status == 0:
		r.say("%s ended with status %d", r.name(), status)
		r.ending, r.status = true, status
	default:
		r.relax(status)
	}
}

// relax delays the next start. After too many ends in a row, it lets another host lead. An end close to the end
// of the lease does not count: the command may have been forced to end.
func (r *runner) relax(status int) {
	now := alarm.Now()
	if !r.leading || now >= guard.Plan(r.until, r.lease).TermAt {
		r.say("%s ended with status %d", r.name(), status)
		return
	}
	if now-r.began >= int64(longRun) && (r.progress.ready || !r.Ready) {
		r.ends = 0
	}
	r.ends++
	wait := pause(r.ends)
	r.notBefore = now + int64(wait)
	if r.ends%giveUpAfter == 0 {
		r.leading, r.over = false, true
		r.why = fmt.Sprintf("%s ended with status %d, %d times in a row", r.name(), status, r.ends)
		r.say("%s: letting another host lead %s for %v", r.why, r.Election, wait)
		return
	}
	r.say("%s ended with status %d: starting it again in %v", r.name(), status, wait)
}

// replaceGuard kills all that is left of the command, and starts another guard. If it can't, it ends Run.
func (r *runner) replaceGuard() {
	r.purge()
	ran := r.state != idle
	r.state = idle
	next, err := r.guard, errors.New("start guard: it ended before it was ready")
	if r.ready {
		next, err = guard.New(environment(r.Config))
	}
	if ran {
		r.say("the guard of %s died, and with it what it ran", r.name())
		defer r.ended(128 + int(syscall.SIGKILL))
	}
	if err != nil {
		r.ending, r.fault = true, err
		return
	}
	r.guard, r.ready = next, false
}
