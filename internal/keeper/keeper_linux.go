package keeper

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/footprint"
	"github.com/doyen-election/doyen/internal/alarm"
)

// The exit codes with which a life ends its keeper too: only an operator can change the outcome.
const (
	exitOK     = 0
	exitUsage  = 64
	exitConfig = 78
)

// keeper is the parent of the lives. Only one goroutine uses it.
type keeper struct {
	program string
	args    []string
	page    *page
	fd      int // of the page
	notify  *notifier
	alarm   *alarm.Alarm
	signals chan os.Signal

	watch   watch
	lives   lives
	pid     int   // of the life; 0: none runs
	born    int64 // when the life was started
	startAt int64 // when the next life is started; never: one runs, or none may be started yet
	hung    bool  // the life was killed because it was overdue
	slow    bool  // and perhaps it was only slow
	renew   bool  // the next life's program is to be the keeper's too
	asked   bool  // a signal has asked for the end
	askedAt int64 // then
	known   Known // of the last life that ran
	burial  chan struct{}
	code    int // the exit code, once the life and the burial have ended; -1: the keeper goes on
}

// Main runs the keeper that Become has made of this process, until the process ends.
func Main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "doyen: keeper: only doyen agent can start it")
		os.Exit(exitUsage)
	}
	k, err := newKeeper(os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "doyen: keeper: %v\n", err)
		os.Exit(1)
	}
	leave(k.run())
}

func newKeeper(program string, args []string) (*keeper, error) {
	// The kernel ends a life when the thread that started it ends.
	runtime.LockOSThread()
	k := &keeper{program: program, args: args, signals: make(chan os.Signal, 16), startAt: never, code: -1}
	signal.Notify(k.signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGHUP)
	var err error
	if k.alarm, err = alarm.New(); err != nil {
		return nil, err
	}
	if k.notify, err = newNotifier(); err != nil {
		return nil, fmt.Errorf("relay to the service manager: %w", err)
	}
	if k.page, k.fd, err = newPage(); err != nil {
		return nil, err
	}
	k.startAt, k.watch.due = 0, never
	return k, nil
}

// run starts lives until one of them is the last, and returns the exit code.
func (k *keeper) run() (code int) {
	k.step(alarm.Now())
	spare()
	for k.pid != 0 || k.code < 0 || k.burial != nil {
		k.alarm.Set(min(k.startAt, k.watch.due))
		select {
		case s := <-k.signals:
			k.signal(s)
		case <-k.alarm.C:
		case <-k.burial:
			k.burial = nil
		}
		k.step(alarm.Now())
		if k.asked && k.pid == 0 {
			break // even if an obituary still waits
		}
	}
	return max(0, k.code)
}

// spare makes this process small: it has little to do, and needs nearly nothing of the program.
func spare() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(8 << 20)
	_ = footprint.Drop() // if that fails, this process only takes more memory
}

// sameRequest is how long after the first signal that asks for an end others are part of the same
// request: whoever stops a service may send both SIGTERM and SIGINT.
const sameRequest = 300 * time.Millisecond

// signal passes a signal on. The first one that asks for an end reaches the life once, even if
// others got it too. The second one kills the life.
func (k *keeper) signal(s os.Signal) {
	sent, ok := s.(syscall.Signal)
	if !ok || sent == syscall.SIGCHLD || sent == syscall.SIGPIPE {
		return
	}
	if sent == syscall.SIGHUP && k.page.next.Load() == 0 {
		return // the life does not catch it yet; it reads its configuration later anyway
	}
	if sent == syscall.SIGTERM || sent == syscall.SIGINT {
		switch now := alarm.Now(); {
		case !k.asked:
			k.asked, k.askedAt = true, now
		case now-k.askedAt < int64(sameRequest):
			return
		default:
			sent = syscall.SIGKILL
		}
	}
	if k.pid != 0 {
		_ = syscall.Kill(k.pid, sent) // the life is not reaped yet, so the number is still its own
	}
}

// step reaps lives, starts the next one when its time has come, and kills one that hangs.
func (k *keeper) step(now int64) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			break
		}
		if pid == k.pid {
			k.ended(now, status)
		}
	}
	if now >= k.startAt && k.burial == nil && k.code < 0 && !k.asked {
		k.start(now)
	}
	if k.pid == 0 {
		return
	}
	next, allowance, state := k.page.next.Load(), time.Duration(k.page.allowance.Load()), k.page.state.Load()
	unwritten := next == 0 || state == starting && now < next
	if unwritten || state == stopping {
		next = never // it has not come so far or does not know of keepers, or its end has its own bounds
	}
	if allowance == 0 {
		allowance = startLimit
	}
	hangs := k.watch.step(now, next, allowance*time.Duration(k.lives.factor()))
	if unwritten { // look again, ever less often
		k.watch.due = now + min(max(now-k.born, int64(tickEvery)), int64(startLimit))
	}
	if !hangs || k.hung {
		return
	}
	traced, stopped := condition(k.pid)
	if traced {
		return
	}
	k.hung, k.slow = true, !stopped
	_ = syscall.Kill(k.pid, syscall.SIGKILL) // first: nobody may read what this process says
	say("the agent hangs: it should have done something %s ago; killing it", time.Duration(now-next).Round(time.Millisecond))
}

// start starts a life.
func (k *keeper) start(now int64) {
	k.startAt = never
	k.page.clear()
	k.watch, k.hung, k.slow = watch{due: never}, false, false
	k.notify.send([]byte("WATCHDOG=1")) // the life's own will follow
	k.born = now
	pid, err := syscall.ForkExec(k.program, k.args, &syscall.ProcAttr{
		Env:   k.environment(),
		Files: []uintptr{0, 1, 2, uintptr(k.fd)},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		say("the agent can't be started: %s: %v", k.program, err)
		k.lives.failed = failures
		k.next(now, maxBackOff)
		return
	}
	k.pid, k.watch.due = pid, now+int64(tickEvery)
	if k.notify != nil {
		k.notify.life.Store(int64(pid))
	}
}

// pageAt is the life's descriptor of the page.
const pageAt = 3

func (k *keeper) environment() []string {
	var all []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case name == "WATCHDOG_PID", name == pageVariable: // the life's own
		case name == notifyVariable && k.notify != nil:
			all = append(all, notifyVariable+"="+k.notify.name)
		default:
			all = append(all, v)
		}
	}
	return append(all, pageVariable+"="+strconv.Itoa(pageAt))
}

// ended handles the end of a life that the kernel has reported, and decides what follows.
func (k *keeper) ended(now int64, status syscall.WaitStatus) {
	state := k.page.state.Load()
	ran := state != starting
	if ran {
		k.known = Known{Record: k.page.record.String(), Pages: k.page.pages.String(), Peer: k.page.peer.String()}
	}
	k.pid, k.watch.due = 0, never
	lasted := time.Duration(now - k.born)
	code := exitCode(status)
	switch {
	case k.asked, state == stopping, status.Exited() && code == exitOK && state != restarting:
		k.code = code
	case !ran && !k.lives.ran, status.Exited() && (code == exitUsage || code == exitConfig):
		k.code = code
		k.bury()
	case state == restarting && status.Exited():
		say("the agent restarts")
		k.lives = lives{ran: true}
		k.startAt, k.renew = now, true
	default:
		say("the agent %s after %s: starting it again", describe(status), lasted.Round(time.Millisecond))
		k.next(now, k.lives.ended(lasted, ran, k.slow))
	}
}

// next has the next life started after a while. If none could be started, it ends the lineage.
func (k *keeper) next(now int64, wait time.Duration) {
	k.startAt = now + int64(wait)
	if k.lives.hopeless() {
		k.notify.send([]byte("STATUS=the agent can't be started; trying again"))
		k.bury()
	}
}

// bury publishes the obituary of the last life that ran, if it was not published yet.
func (k *keeper) bury() {
	if k.known.Record == "" || k.burial != nil {
		return
	}
	known := k.known
	k.known = Known{}
	k.burial = make(chan struct{})
	go func() {
		defer close(k.burial)
		if err := bury(known); err != nil {
			say("the other hosts wait for the lease to end: %v", err)
		}
	}()
}

// condition reports whether a debugger is attached to the process, and may have stopped it, and
// whether a signal has stopped it.
func condition(pid int) (traced, stopped bool) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false, false
	}
	_, after, found := strings.Cut(string(status), "\nTracerPid:\t")
	return found && !strings.HasPrefix(after, "0\n"), strings.Contains(string(status), "\nState:\tT")
}

// exitCode is the exit code that a shell would show for the status.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("was ended by signal %d (%s)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("ended with exit code %d", status.ExitStatus())
}

// leave ends this process in the way in which the life ended.
func leave(code int) {
	if s := syscall.Signal(code - 128); code > 128 && unix.SignalName(s) != "" {
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s)
	}
	os.Exit(code) // PID 1 does not die of its own signals
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "doyen: keeper: "+format+"\n", args...)
}
