package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

const (
	// GuardWord is the first argument of a process that is to call Guard.
	GuardWord = "run-guard"
	// guardSocket is the descriptor of the guard's end of the link.
	guardSocket = 3
	// keepFrom is the least descriptor under which a command holds its copy of
	// the campaign's connection: above those that shells and daemons use.
	keepFrom = 100
	// again is how long a guard waits before it kills again, and stuckAfter how long
	// before it reports that killing does not help.
	again      = 2 * time.Millisecond
	stuckAfter = 200 * time.Millisecond
	// maxOrders bounds the orders that a guard obeys before it looks at its schedule. Its
	// socket holds fewer.
	maxOrders = 1000
	// never is after every deadline.
	never = int64(math.MaxInt64)
)

// guard is a separate process that starts and ends the command. The guard alone waits for
// the command and its descendants: it is their parent, or becomes that.
type guard struct {
	link     *link
	ready    chan struct{} // there may be orders; nil once the runner is gone
	alarm    *alarm.Alarm
	path     string
	args     []string
	group    int // process group the command joins; 0: a separate one
	nice     int // of the command
	orphan   bool
	command  *command // nil: nothing runs
	cgroup   *cgroup
	receipts sync.WaitGroup
	forks    chan *syscall.ProcAttr
	made     chan birth
}

// Guard is the whole life of a guard. args are what Run gave the guard, and the caller ends
// the process with the status that Guard returns. The main function must call it, before
// anything else has started a process.
func Guard(args []string) int {
	g, err := newGuard(args)
	if err == nil {
		err = g.loop()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "doyen: guard: %v\n", err)
		return 1
	}
	return 0
}

func newGuard(args []string) (*guard, error) {
	if len(args) < 4 {
		return nil, errors.New("only doyen run can start it")
	}
	group, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, fmt.Errorf("parse process group: %w", err)
	}
	nice, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, fmt.Errorf("parse priority: %w", err)
	}
	syscall.CloseOnExec(guardSocket)
	// When a process with threads needs a larger table of descriptors, that takes some ten
	// milliseconds. They are spent now, and not when the command is to start.
	if grown, err := unix.FcntlInt(guardSocket, unix.F_DUPFD_CLOEXEC, keepFrom); err == nil {
		syscall.Close(grown)
	}
	file := os.NewFile(guardSocket, "runner")
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("open the runner's socket: %w", err)
	}
	file.Close()
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("open the runner's socket: it is not a Unix socket")
	}
	if err := adopt(); err != nil {
		return nil, err
	}
	a, err := alarm.New()
	if err != nil {
		return nil, err
	}
	return &guard{cgroup: newCgroup(os.Getpid()), link: &link{conn: socket}, ready: make(chan struct{}), alarm: a,
		forks: make(chan *syscall.ProcAttr), made: make(chan birth), group: group, nice: nice, path: args[2], args: args[3:]}, nil
}

// loop obeys orders, reaps and keeps the schedule until both runner and command are gone.
func (g *guard) loop() error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	// What ends or stops the runner must not end its guard. The signals are caught, since
	// the command would inherit it if they were ignored.
	deaf := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGPIPE} {
		if !signal.Ignored(s) {
			signal.Notify(deaf, s)
		}
	}
	go g.link.listen(g.ready)
	go g.fork()
	g.receipts.Go(warm)
	g.tell(report{Kind: isReady}) // the loop finds out if the runner is gone
	for !g.orphan || g.command != nil {
		select {
		case <-g.ready:
		case <-ended:
		case <-g.alarm.C:
		}
		// The clock is read before the orders. So an order from before a deadline is known
		// when the deadline is judged, even if this guard did not run for a while.
		now := alarm.Now()
		g.catchUp()
		g.step(now)
	}
	g.cgroup.drop()
	g.receipts.Wait()
	return nil
}

// catchUp obeys all orders that the runner has given.
func (g *guard) catchUp() {
	for range maxOrders {
		if g.orphan {
			return
		}
		var o order
		got, err := g.link.next(&o)
		if err == nil && !got {
			return
		}
		if o.Do == doStart || o.Do == doKeep || o.Do == doNothing {
			o.Copy = g.link.take()
		}
		g.obey(o, err == nil)
	}
}

func (g *guard) obey(o order, ok bool) {
	c := g.command
	switch {
	case !ok:
		g.ready, g.orphan = nil, true
		if c != nil {
			c.killAt = 0
		}
	case o.Do == doNothing && o.Copy >= 0:
		syscall.Close(o.Copy)
	case o.Do == doStart && c == nil:
		g.start(o)
	case o.Do == doKeep && o.Copy >= 0:
		g.keep(o.Copy)
	case c == nil: // sent before the runner knew that the command is gone
	case o.Do == doLease:
		c.schedule, c.term = o.Schedule, o.Term
	case o.Do == doStop:
		c.stop(o)
	case o.Do == doSignal:
		c.pass(syscall.Signal(o.Signal))
	}
}

// start starts the command, unless its time has passed already.
func (g *guard) start(o order) {
	if o.Copy >= 0 {
		defer syscall.Close(o.Copy)
	}
	if alarm.Now() >= o.Schedule.TermAt {
		g.tell(report{Kind: isGone, Why: tooLate})
		return
	}
	// The command inherits every descriptor that is not closed on exec. It is the only
	// process that a guard starts.
	kept, err := -1, error(nil)
	if o.Copy >= 0 {
		if kept, err = unix.FcntlInt(uintptr(o.Copy), unix.F_DUPFD, keepFrom); err != nil {
			kept = -1
		}
	}
	pid, err := g.exec(o)
	if err != nil {
		if kept >= 0 {
			syscall.Close(kept)
		}
		errno, _ := errors.AsType[syscall.Errno](err)
		g.tell(report{Kind: isFailed, Errno: int(errno), Why: err.Error()})
		return
	}
	g.command = &command{pid: pid, group: pid, kept: kept, campaign: o.Campaign, term: o.Term, grace: o.Grace, schedule: o.Schedule, killAt: never, termAt: never, told: map[int]bool{}}
	if g.group > 0 {
		g.command.group = 0
	}
	calm(pid, g.command.group, g.nice)
	g.tell(report{Kind: isStarted})
}

// keep holds a copy of the connection by which the candidacy goes on. The command can't be
// given one: from here on the candidacy ends with runner and guard.
func (g *guard) keep(connection int) {
	if g.command == nil {
		syscall.Close(connection)
		return
	}
	if g.command.kept >= 0 {
		syscall.Close(g.command.kept)
	}
	g.command.kept = connection
}

// exec makes the process, outside of a control group if it can't be in one.
func (g *guard) exec(o order) (pid int, err error) {
	env := append(os.Environ(), "DOYEN_TERM="+strconv.FormatUint(o.Term, 10))
	if o.Notify != "" {
		env = append(env, "NOTIFY_SOCKET="+o.Notify)
	}
	attr := &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2},
		Sys:   attributes(g.group),
	}
	if g.cgroup.hold(attr.Sys) {
		if pid, err = g.forked(attr); err == nil {
			return pid, nil
		}
		g.cgroup.drop()
		attr.Sys = attributes(g.group)
	}
	return g.forked(attr)
}

// fork makes processes on one thread, which lives as long as the guard: the kernel kills
// the command when the thread that made it ends. The loop itself is not bound to a thread:
// it would be slower to wake.
func (g *guard) fork() {
	runtime.LockOSThread()
	for attr := range g.forks {
		pid, err := syscall.ForkExec(g.path, g.args, attr)
		g.made <- birth{pid, err}
	}
}

// birth is the outcome of making a process.
type birth struct {
	pid int
	err error
}

func (g *guard) forked(attr *syscall.ProcAttr) (pid int, err error) {
	g.forks <- attr
	made := <-g.made
	return made.pid, made.err
}

// step reaps processes that ended, does what is due, and reports when no process is left.
func (g *guard) step(now int64) {
	childless := reap(func(pid int, status unix.WaitStatus) {
		if c := g.command; c != nil && c.pid == pid && !c.ended {
			c.end(exitStatus(status))
		}
	})
	c := g.command
	if c == nil {
		return
	}
	if !childless {
		if fault := c.enforce(now, g.cgroup.kill); fault != "" {
			g.tell(report{Kind: isStuck, Why: fault})
		}
		g.alarm.Set(c.next(now))
		return
	}
	if g.orphan || c.why == byLease {
		g.withdraw(c)
	}
	if c.kept >= 0 {
		syscall.Close(c.kept)
	}
	g.command = nil
	g.tell(report{Kind: isGone, Why: c.why, Status: c.status, Killed: c.killing > 0, Others: c.others})
	if c.killing > 0 && !g.orphan { // in a group that was killed once, some kernels kill every new process
		g.cgroup.drop()
		g.cgroup = newCgroup(os.Getpid())
	}
}

// withdraw ends the candidacy and sends the receipt, since the runner can't: it has died or
// is frozen. Else the agent would renew the lease for a host where nothing runs. withdraw
// closes the connection first: else the candidacy could be elected again.
func (g *guard) withdraw(c *command) {
	if c.kept >= 0 {
		_ = syscall.Shutdown(c.kept, syscall.SHUT_RDWR)
	}
	agent := client.New(os.Getenv("DOYEN_SOCKET"))
	g.receipts.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), receiptTimeout)
		defer cancel()
		_ = agent.Stopped(ctx, c.campaign, c.term) // if it fails, the lease runs out
		agent.Close()
	})
}

// warm asks the agent something, so that the receipt is not the first request. The first one
// takes milliseconds longer, for program pages and tables that were not used before, and a
// successor waits for the receipt.
func warm() {
	agent := client.New(os.Getenv("DOYEN_SOCKET"))
	ctx, cancel := context.WithTimeout(context.Background(), receiptTimeout)
	defer cancel()
	_, _ = agent.Agent(ctx)
	agent.Close()
}

// tell sends the runner a report. The loop notices it if the runner has ended.
func (g *guard) tell(r report) { _ = g.link.send(r, -1) }

// exitStatus is what a shell would call the status.
func exitStatus(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
