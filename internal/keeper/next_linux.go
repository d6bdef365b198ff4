package keeper

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

func (k *keeper) start(now int64) {
	k.startAt = never
	k.page.clear(k.why)
	k.trial.begun = 0
	k.watch, k.hung, k.slow, k.born = watch{due: never}, false, false, now
	k.notify.send([]byte("WATCHDOG=1")) // until the life feeds the watchdog itself
	pid, err := k.notify.starting(func() (int, error) {
		return k.bare.start(k.Program, k.Args, &syscall.ProcAttr{
			Env:   k.environment(),
			Files: []uintptr{0, 1, 2, uintptr(k.fd), uintptr(k.trial.out)},
			Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
		})
	})
	if err != nil {
		k.logger.Error("the agent can't be started", "program", k.Program, "err", err)
		k.next(now, k.lives.ended(0, false, false), exitFailed)
		return
	}
	k.pid, k.watch.due = pid, now+int64(tickEvery)
}

// pageAt is the descriptor of the page in a life. The next higher one is that of a trial's output.
const pageAt = 3

func (k *keeper) environment() []string {
	var all []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case name == "WATCHDOG_PID", name == pageVariable: // dropped; the life gets its own page below
		case name == notifyVariable && k.notify != nil:
			all = append(all, notifyVariable+"="+k.notify.name)
		default:
			all = append(all, v)
		}
	}
	return append(all, pageVariable+"="+strconv.Itoa(pageAt))
}

// reap reads the exit codes of the children that have ended. PID 1 also gets other processes as children, when
// their parents have ended.
func (k *keeper) reap(now int64) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
		switch {
		case pid == k.pid:
			k.ended(now, status)
		case pid == k.act.pid:
			k.actEnded(now, status)
		case pid == k.trial.pid:
			k.tried(0, status)
		}
	}
}

// ended handles the end of a life, which the kernel has reported, and decides what follows.
func (k *keeper) ended(now int64, status syscall.WaitStatus) {
	state, lasted := k.page.state.Load(), time.Duration(now-k.born)
	if known := knownFrom(k.page.told()); known.Peer != "" {
		k.known = known
	}
	ran, code := state != starting, exitCode(status)
	restarts := state == restarting && status.Exited()
	k.pid, k.watch.due, k.held = 0, never, 0
	k.why = describe(status, k.hung, restarts)
	switch {
	case k.forced: // the operator has asked not to wait
		k.code = code
	case k.asked, state == stopping, status.Exited() && (code == exitUsage || code == exitConfig):
		if k.code = code; state != stopping || code != exitOK {
			k.bury() // the life has not handed over
		}
	case !ran && !k.lives.ran:
		k.code = max(code, exitFailed)
	case restarts:
		k.logger.Info("the agent restarts")
		k.lives = lives{ran: true}
		k.startAt = now
	default:
		wait := k.lives.ended(lasted, ran, k.slow)
		k.logger.Warn("the agent has ended, starting it again", "after", lasted.Round(time.Millisecond), "in", wait, "why", k.why)
		k.next(now, wait, code)
	}
}

// next starts the next life after a wait. If no life can start, it ends the lineage and then this process: what
// depends on the service must not go on without an agent.
func (k *keeper) next(now int64, wait time.Duration, code int) {
	k.startAt = now + int64(wait)
	if !k.lives.hopeless() {
		return
	}
	k.notify.send([]byte("STATUS=the agent can't be started again"))
	if k.code = code; code < exitFailed || code > 128 { // a clean exit code, or that of a signal, would hide the failure
		k.code = exitFailed
	}
	k.logger.Error("the agent can't be started again: giving up", "code", k.code)
	k.bury()
}

// bury starts to remove the record and the lease pages, once, if a life has reported that the lineage has any.
func (k *keeper) bury() {
	if k.known.Peer == "" || k.known.Record == "" && !k.lives.ran || k.burial != nil {
		return
	}
	of, peer, done := k.Given, election.PeerID(k.known.Peer), make(chan struct{})
	if k.known.Record == "" {
		of.Record = ""
	}
	k.known, k.burial, k.buryBy = Known{}, done, alarm.Now()+int64(buryFor)
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread then ends with this goroutine
		giveUp()               // the agent owns the directories, and could have linked them to what it may not delete
		if err := bury(of, peer); err != nil {
			k.logger.Warn("not all that this agent has set up was ended", "err", err)
		}
	}()
}

// exitCode returns the status in the form that a shell uses.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

func describe(status syscall.WaitStatus, hung, restarts bool) string {
	switch {
	case restarts:
		return "it was asked to restart"
	case hung:
		return "it did not answer, and its keeper killed it"
	case status.Signaled():
		return fmt.Sprintf("it was killed by signal %d (%s)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("it ended with exit code %d", status.ExitStatus())
}
