package runner

import (
	"cmp"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/act/health"
)

// lastOutput bounds the wait for the output of a check that has ended: what it left behind may
// hold the pipe open.
const lastOutput = 100 * time.Millisecond

// checking is the health check. Its process is a child of the runner, whose loop takes the status
// of every child: os/exec would never get it.
//
// Invariant: output is nil exactly while no run is under way. A run ends when its process is
// reaped and its output is read.
type checking struct {
	judge  health.Judge
	unfit  string // why this host may not be a candidate; empty: it may
	pid    int    // 0: no process is left
	output *output
	read   bool  // output has been
	nextAt int64 // when the next run starts
	failAt int64 // when the run under way counts as failed, because it has not ended
	failed bool  // it has, or does not count
	status unix.WaitStatus
}

// output is what a run of the check writes.
type output struct {
	health.LastLine
	pipe *os.File
}

// newChecking has this host be no candidate before the first success.
func newChecking(c health.Check) checking {
	if c.Command == "" {
		return checking{nextAt: never, failAt: never}
	}
	return checking{judge: c.Judge(false), unfit: "no check has succeeded yet", failAt: never}
}

// check starts a run when it is due, and kills one that hangs: again and again, and each time it
// counts as failed.
func (r *runner) check(now int64) {
	k := &r.checking
	switch {
	case k.output == nil && now >= k.nextAt && !r.ending:
		k.nextAt, k.read = now+int64(r.Check.Every), false
		if err := r.runCheck(); err != nil {
			r.conclude("it can't be started: " + err.Error())
			return
		}
		k.failed, k.failAt = false, now+int64(r.Check.Timeout)
	case k.pid != 0 && now >= k.failAt:
		killGroup(k.pid)
		k.failed, k.failAt = true, now+int64(r.Check.Every)
		r.conclude(r.Check.Late(&k.output.LastLine))
	}
}

// checkAt is when check has something to do.
func (r *runner) checkAt() int64 {
	switch k := &r.checking; {
	case k.output != nil:
		return k.failAt
	case r.ending:
		return never
	default:
		return k.nextAt
	}
}

func (r *runner) runCheck() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	pipe, end, err := os.Pipe()
	if err != nil {
		return err
	}
	defer end.Close()
	pid, err := syscall.ForkExec(shell, []string{shell, "-c", r.Check.Command}, &syscall.ProcAttr{
		Env: environment(r.Config), Files: []uintptr{null.Fd(), end.Fd(), end.Fd()}, Sys: attributes(0),
	})
	if err != nil {
		pipe.Close()
		return err
	}
	calm(pid, pid, r.nice)
	o := &output{pipe: pipe}
	r.checking.pid, r.checking.output = pid, o
	go func() {
		_, _ = io.Copy(o, pipe) // until nobody has the other end, or the deadline
		pipe.Close()
		select {
		case r.outputs <- o:
		case <-r.ctx.Done():
		}
	}()
	return nil
}

// reaped takes the end of a child.
func (r *runner) reaped(pid int, status unix.WaitStatus) {
	k := &r.checking
	if pid != k.pid {
		return
	}
	if inhabited(pid) { // by what it left behind
		killGroup(pid)
	}
	k.pid, k.failAt, k.status = 0, never, status
	_ = k.output.pipe.SetReadDeadline(time.Now().Add(lastOutput)) // it may be closed already
	r.checked()
}

// checked takes the outcome of a run that has ended.
func (r *runner) checked() {
	k := &r.checking
	if k.pid != 0 || !k.read {
		return
	}
	text, status := k.output.Text(), exitStatus(k.status)
	k.output = nil
	switch {
	case k.failed:
	case status == 0:
		r.conclude("")
	default:
		r.conclude(cmp.Or(text, "exit status "+strconv.Itoa(status)))
	}
}

// conclude takes an outcome: why the check has failed, or empty.
func (r *runner) conclude(why string) {
	k := &r.checking
	if !k.judge.Add(why == "") {
		return
	}
	if k.unfit = why; why == "" {
		return
	}
	k.unfit = health.Failed + why
	if r.leading {
		r.handOver(k.unfit, 0)
	} else {
		r.say("not a candidate in %s: %s", r.Election, k.unfit)
	}
}

// withdraw ends the candidacy of a host that is not fit. Nothing runs under it.
func (r *runner) withdraw() {
	if r.candidacy != nil {
		r.candidacy.Close()
		r.candidacy, r.over, r.resuming = nil, false, false
	}
}

// checkAlone reports whether a process of the check is all that is left. It has been killed, and
// is no process of the command.
func (r *runner) checkAlone() bool {
	return r.checking.pid != 0 && slices.Equal(children(unix.Getpid()), []int{r.checking.pid})
}
