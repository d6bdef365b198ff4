package keeper

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/base/footprint"
	"github.com/doyen-election/doyen/internal/base/logger"
)

// If a life ends with exitUsage or exitConfig, its keeper does too: only an operator can mend the cause.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 64
	exitConfig = 78
)

// keeper is the parent of the lives. Only one goroutine uses it.
type keeper struct {
	Given
	page     *page
	fd       int // descriptor of the page
	notify   *notifier
	watchdog time.Duration // how often the service manager expects a sign of life; 0: it expects none
	alarm    *alarm.Alarm
	ends     chan os.Signal // signals that ask for an end
	others   chan os.Signal
	children chan os.Signal
	logger   *slog.Logger

	watch   watch
	lives   lives
	pid     int            // the life's process; 0: none runs
	born    int64          // when the life was started
	startAt int64          // when to start the next life; never: no start is planned
	feedAt  int64          // when the keeper next feeds the watchdog; never: the life feeds it, or the service manager expects nothing
	hung    bool           // the life was killed because it was overdue
	slow    bool           // the killed life may only have been slow: it hung without being stopped by a signal
	held    syscall.Signal // a signal that asks for an end, to be passed on once the life has ticked; 0: none
	asked   bool           // a signal has asked for the end
	askedAt int64          // when the first such signal came
	forced  bool           // a second signal has asked for an end at once
	known   Known          // what a life last wrote about itself
	why     string         // how the last life ended
	burial  chan struct{}
	buryBy  int64 // until when doyen act may run on while the burial lasts
	act     act
	trial   trial
	bare    bare // starts the lives and the trials
	code    int  // the exit code, once the last life and the burial have ended; -1: the keeper runs on
}

// Main runs the keeper into which Become has turned this process, until the process ends.
func Main() {
	Private()
	g, err := given(os.Args[2:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "doyen: keeper: %v\n", err)
		os.Exit(exitUsage)
	}
	name := append([]byte(Word), 0)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0) // otherwise ps would show the name of a descriptor
	k, err := newKeeper(g)
	if err != nil {
		fmt.Fprintf(os.Stderr, "doyen: keeper: %v\n", err)
		os.Exit(exitFailed)
	}
	leave(k.run())
}

func newKeeper(g Given) (*keeper, error) {
	runtime.LockOSThread() // the kernel ends doyen act when the thread that started it ends
	k := &keeper{Given: g, startAt: never, feedAt: never, code: -1, bare: newBare(),
		ends: make(chan os.Signal, 8), others: make(chan os.Signal, 8), children: make(chan os.Signal, 1),
		logger: logger.New(g.LogFormat, logger.Level(g.LogLevel), os.Stderr).With("part", "keeper")}
	signal.Notify(k.children, syscall.SIGCHLD, syscall.SIGWINCH) // see Life.calls
	signal.Notify(k.ends, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(k.others, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE)
	var err error
	if k.alarm, err = alarm.New(); err != nil {
		return nil, err
	}
	if k.notify, err = newNotifier(); err != nil {
		return nil, fmt.Errorf("relay to the service manager: %w", err)
	}
	if k.notify != nil {
		usec, _ := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64) // without a valid value the service manager expects nothing
		k.watchdog = time.Duration(usec) * time.Microsecond
	}
	if k.page, k.fd, err = newPage(); err != nil {
		return nil, err
	}
	if k.trial.out, err = newMemory("doyen-trial", maxTried); err != nil {
		return nil, err
	}
	k.startAt, k.watch.due, k.trial.endBy = 0, never, never
	return k, nil
}

// run starts one life after another until no further one is to follow, and returns the exit code.
func (k *keeper) run() (code int) {
	k.step(alarm.Now())
	spare()
	for k.pid != 0 || k.burial != nil || k.act.pid != 0 || k.code < 0 && !k.asked {
		k.alarm.Set(min(k.startAt, k.watch.due, k.feedAt, k.actWake(alarm.Now()), k.trial.endBy))
		select {
		case s := <-k.ends:
			k.end(s, alarm.Now())
		case s := <-k.others:
			k.pass(s)
		case <-k.children:
		case <-k.alarm.C:
		case <-k.burial:
			k.burial = nil
		}
		k.step(alarm.Now())
		if k.forced && k.pid == 0 && k.act.pid == 0 {
			break // does not wait for the burial, which a disk that hangs may delay
		}
	}
	return max(0, k.code)
}

// spare keeps this process's memory small.
func spare() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(8 << 20)
	_ = footprint.Drop() // if that fails, this process only uses more memory
}

const (
	// sameRequest is how long after the first signal that asks for an end another one counts as the same
	// request: some programs stop a service with both SIGTERM and SIGINT.
	sameRequest = 300 * time.Millisecond
	// holdLimit is how long the keeper holds a signal for a life that has not ticked yet. holdEvery is how
	// often the keeper then checks the page.
	holdLimit = 5 * time.Second
	holdEvery = 5 * time.Millisecond
)

// end handles a signal that asks for an end. It passes the first signal to the life, once, but not before the
// life has ticked: a life that does not catch the signal yet would end without a hand-over. A second request
// kills the life.
func (k *keeper) end(s os.Signal, now int64) {
	switch {
	case !k.asked:
		k.asked, k.askedAt = true, now
		if k.held, _ = s.(syscall.Signal); k.pid == 0 {
			k.bury() // there is no life that could hand over
		}
	case now-k.askedAt >= int64(sameRequest):
		k.forced, k.held = true, 0
		k.pass(syscall.SIGKILL)
	}
}

func (k *keeper) pass(s os.Signal) {
	sent, ok := s.(syscall.Signal)
	if !ok || k.pid == 0 || sent == syscall.SIGPIPE {
		return
	}
	if sent != syscall.SIGHUP || k.page.next.Load() != 0 { // a starting life needs no SIGHUP: it reads its configuration anyway
		_ = syscall.Kill(k.pid, sent) // the life is not reaped yet, so its number can't belong to another process
	}
}

func (k *keeper) step(now int64) {
	k.reap(now)
	if now >= k.startAt && k.burial == nil && k.code < 0 && !k.asked {
		k.start(now)
	}
	k.feed(now)
	k.stepAct(now)
	k.stepTrial(now)
	if k.pid == 0 {
		return
	}
	next, state := k.page.next.Load(), k.page.state.Load()
	unwritten := next == 0 || next > now+2*int64(tickEvery) // the life has not ticked yet
	if unwritten || state == stopping {
		next = never // a life that has not ticked or does not know of keepers; a stopping life has its own time limit
	}
	allowance := cmp.Or(time.Duration(k.page.allowance.Load()), startLimit)
	hangs := k.watch.step(now, next, allowance*time.Duration(k.lives.factor()), func() map[int]thread { return threadsOf(k.pid) })
	if unwritten { // check again, less and less often
		k.watch.due = now + min(max(now-k.born, int64(tickEvery)), int64(startLimit))
	}
	switch {
	case k.held == 0:
	case unwritten && now-k.born < int64(holdLimit):
		k.watch.due = now + int64(holdEvery)
	default:
		k.pass(k.held)
		k.held = 0
	}
	if !hangs || k.hung {
		return
	}
	traced, stopped := condition(k.pid)
	if traced {
		return
	}
	k.hung, k.slow = true, !stopped
	_ = syscall.Kill(k.pid, syscall.SIGKILL) // first, because the next line blocks if nobody reads the log
	k.logger.Warn("the agent hangs: killing it", "overdue", time.Duration(now-next).Round(time.Millisecond))
}

// feed reports to the service manager that this process works, while no life does so.
func (k *keeper) feed(now int64) {
	switch {
	case k.pid != 0 || k.watchdog <= 0:
		k.feedAt = never
	case k.feedAt == never || now >= k.feedAt:
		k.notify.send([]byte("WATCHDOG=1"))
		k.feedAt = now + int64(k.watchdog/3)
	}
}

// condition reports whether a debugger is attached to the process, which may have stopped it, and whether a
// signal has stopped the process.
func condition(pid int) (traced, stopped bool) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false, false
	}
	_, after, found := strings.Cut(string(status), "\nTracerPid:\t")
	return found && !strings.HasPrefix(after, "0\n"), strings.Contains(string(status), "\nState:\tT")
}

// leave ends this process in the same way as the life ended.
func leave(code int) {
	if s := syscall.Signal(code - 128); code > 128 && unix.SignalName(s) != "" {
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s)
	}
	os.Exit(code) // also for PID 1: no signal that it sends to itself kills it
}
