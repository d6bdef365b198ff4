package guard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/base/each"
)

const (
	// Word is the first argument of a process that has to call Main.
	Word = "guard"
	// guardSocket is the descriptor of the guard's end of the link.
	guardSocket = 3
	// keepFrom is the lowest descriptor for the command's copy of the campaign's connection. Shells and daemons
	// use lower ones.
	keepFrom = 100
	// Again is the wait before the next kill. StuckAfter is the time after which the guard reports
	// that killing does not help.
	Again      = 2 * time.Millisecond
	StuckAfter = 200 * time.Millisecond
	// receiptTimeout bounds the sending of a receipt.
	receiptTimeout = time.Second
	// maxOrders is how many orders a guard obeys before it checks its schedule. The socket holds fewer, so the
	// guard has then obeyed all that waited.
	maxOrders = 1000
	// never is later than any deadline.
	never = int64(math.MaxInt64)
)

// process is a guard at work. No other process waits for the command and its descendants: the guard is
// their parent, or becomes their parent.
type process struct {
	link     *link
	ready    chan struct{} // there may be orders; nil once the parent has ended
	alarm    *alarm.Alarm
	orphan   bool
	command  *command // nil: no command runs
	receipts sync.WaitGroup
	forks    chan fork
	made     chan birth
}

// Main is all that a guard's process does. The main function must call it before anything starts
// another process, and must exit with the status that Main returns.
func Main() int {
	g, err := newProcess()
	if err != nil {
		fmt.Fprintf(os.Stderr, "doyen: guard: %v\n", err)
		return 1
	}
	g.loop()
	return 0
}

func newProcess() (*process, error) {
	syscall.CloseOnExec(guardSocket)
	// A process with threads needs some ten milliseconds to enlarge its table of descriptors, so the guard does
	// that before a command has to start.
	if grown, err := unix.FcntlInt(guardSocket, unix.F_DUPFD_CLOEXEC, keepFrom); err == nil {
		syscall.Close(grown)
	}
	file := os.NewFile(guardSocket, "parent")
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, errors.New("only doyen run and doyen act can start it")
	}
	file.Close()
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("open the parent's socket: it is not a Unix socket")
	}
	if err := Adopt(); err != nil {
		return nil, err
	}
	a, err := alarm.New()
	if err != nil {
		return nil, err
	}
	Hurry()
	return &process{link: &link{conn: socket}, ready: make(chan struct{}), alarm: a, forks: make(chan fork, 1), made: make(chan birth, 1)}, nil
}

// loop obeys orders, reaps, and keeps the schedule, until the parent and the command have ended.
func (g *process) loop() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	// A signal that ends or stops the parent must not end its guard. The guard catches such signals: if it
	// ignored them, the command would ignore them too.
	deaf := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGPIPE} {
		if !signal.Ignored(s) {
			signal.Notify(deaf, s)
		}
	}
	runtime.GOMAXPROCS(2) // one processor more, for an exec that hangs, see forker
	go g.link.listen(g.ready)
	go g.forker()
	g.tell(Report{Kind: Ready}) // an error does not matter: the loop notices if the parent has ended
	for !g.orphan || g.command != nil {
		select {
		case <-g.ready:
		case <-ended:
		case <-g.alarm.C:
		case b := <-g.made:
			g.born(b)
		}
		// The clock is read before the orders. So the guard knows every order that came before a deadline when it
		// checks the deadline, even if it did not run for a while.
		now := alarm.Now()
		g.catchUp()
		g.step(now)
	}
	g.receipts.Wait()
}

// catchUp obeys all orders that have arrived. If the parent has ended, the command is to be killed
// at once.
func (g *process) catchUp() {
	for range maxOrders {
		if g.orphan {
			return
		}
		var o Order
		got, err := g.link.next(&o)
		switch {
		case err != nil:
			g.ready, g.orphan = nil, true
			if g.command != nil {
				g.command.killAt = 0
			}
			return
		case !got:
			return
		}
		o.files = g.link.take(o.Copies)
		g.obey(&o)
		for _, fd := range o.files {
			syscall.Close(fd)
		}
	}
}

// obey obeys an order. The caller closes the descriptors that are still in the order afterwards.
func (g *process) obey(o *Order) {
	c := g.command
	switch {
	case o.Do == Prepare:
		g.receipts.Go(warm)
	case o.Do == Start && c == nil:
		g.start(o)
	case c == nil: // when the parent sent this, it did not know yet that the command has ended
	case o.Do == Keep:
		c.keep(o.files, unix.F_DUPFD_CLOEXEC)
	case o.Do == Lease:
		c.schedule, c.term = o.Schedule, o.Term
	case o.Do == Stop:
		c.stop(*o)
	case o.Do == Signal:
		c.pass(syscall.Signal(o.Signal))
	}
}

// start makes the forker start the command, unless its schedule has run out already.
func (g *process) start(o *Order) {
	if alarm.Now() >= o.Schedule.TermAt {
		g.tell(Report{Kind: Gone, Why: TooLate})
		return
	}
	c := &command{order: *o, kept: -1, term: o.Term, schedule: o.Schedule, killAt: never, termAt: never, told: map[int]bool{}}
	f := fork{path: o.Path, attr: syscall.ProcAttr{Env: append(os.Environ(), o.Env...), Files: []uintptr{0, 1, 2}, Sys: attributes(o.Group)}}
	f.args = each.Of(o.Args, func(arg []byte) string { return string(arg) })
	if o.Standard && len(o.files) == 2 {
		f.closed, o.files = o.files, nil
		f.attr.Files = []uintptr{uintptr(f.closed[0]), uintptr(f.closed[1]), uintptr(f.closed[1])}
	} else {
		// The command inherits every descriptor that is not closed on exec, so it gets this copy. The guard
		// starts no other process.
		c.keep(o.files, unix.F_DUPFD)
	}
	g.command = c
	g.forks <- f
}

// fork describes a process to be started.
type fork struct {
	path   string
	args   []string
	attr   syscall.ProcAttr
	closed []int // descriptors to close when it has started
}

// birth is the outcome of starting a process.
type birth struct {
	pid int
	err error
}

// forker starts processes on one thread, which lives as long as the guard: the kernel kills the command when
// the thread that started it ends. The loop is not bound to a thread, since that would make it slower to wake.
//
// An exec may hang, because of a disk or a scanner. Its thread then keeps a processor, and a garbage collection
// would make all other threads wait for it. So no collection begins before the exec has ended, and the loop can
// keep the deadline.
func (g *process) forker() {
	runtime.LockOSThread()
	for f := range g.forks {
		every := debug.SetGCPercent(-1)
		pid, err := syscall.ForkExec(f.path, f.args, &f.attr)
		debug.SetGCPercent(every)
		for _, fd := range f.closed {
			syscall.Close(fd)
		}
		g.made <- birth{pid, err}
	}
}

// born handles the outcome of starting the command.
func (g *process) born(b birth) {
	c := g.command
	if b.err != nil {
		c.drop()
		g.command = nil
		errno, _ := errors.AsType[syscall.Errno](b.err)
		g.tell(Report{Kind: Failed, Errno: int(errno), Why: b.err.Error()})
		return
	}
	c.pid = b.pid
	if c.order.Group == 0 {
		c.group = b.pid
	}
	if c.first.pid == b.pid {
		c.end(c.first.status)
	} else {
		calm(b.pid, c.group, c.order.Nice)
	}
	c.pass(c.early) // 0 sends nothing
	g.tell(Report{Kind: Started})
}

// step reaps the processes that have ended, does what is due, and reports when no process is left.
func (g *process) step(now int64) {
	childless := Reap(func(pid int, status unix.WaitStatus) {
		if c := g.command; c != nil {
			c.reaped(pid, exitStatus(status))
		}
	})
	c := g.command
	if c == nil {
		return
	}
	if leaves := c.ended && c.order.Standard && c.why == ByItself; c.pid == 0 || !childless && !leaves {
		spared := c.killing == 0
		fault := c.enforce(now)
		if spared && c.killing != 0 {
			g.tell(Report{Kind: Kills})
		}
		if fault != "" {
			g.tell(Report{Kind: Stuck, Why: fault})
		}
		g.alarm.Set(c.next(now))
		return
	}
	if !childless && !c.order.LeavesGroup && c.held() > 0 {
		killGroup(c.group)
	}
	if c.order.Campaign != "" && (g.orphan || c.why == ByLease) {
		g.withdraw(c)
	}
	c.drop()
	g.command = nil
	g.tell(Report{Kind: Gone, Why: c.why, Status: c.status, Killed: c.killing > 0, Others: c.others || !childless})
}

// withdraw sends the receipt in place of the parent, which has died or is frozen. Without a receipt, the agent
// would renew the lease for a host where nothing runs. The receipt also ends the candidacy. If it is lost, the
// end of the connection ends the candidacy.
func (g *process) withdraw(c *command) {
	agent, kept := client.New(os.Getenv("DOYEN_SOCKET")), c.kept
	c.kept = -1
	g.receipts.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), receiptTimeout)
		defer cancel()
		_ = agent.Stopped(ctx, c.order.Campaign, c.term) // if it fails, the lease runs out
		if kept >= 0 {
			_ = errors.Join(syscall.Shutdown(kept, syscall.SHUT_RDWR), syscall.Close(kept))
		}
		agent.Close()
	})
}

// warm asks the agent a question in advance, so that the receipt is not the first request. A first request
// takes milliseconds longer, because it touches memory that was not used before. A successor waits for the
// receipt.
func warm() {
	agent := client.New(os.Getenv("DOYEN_SOCKET"))
	ctx, cancel := context.WithTimeout(context.Background(), receiptTimeout)
	defer cancel()
	_, _ = agent.Agent(ctx)
	agent.Close()
}

// tell sends the parent a report. If the parent has ended, the loop notices that by itself.
func (g *process) tell(r Report) { _ = send(g.link.conn, r) }

// exitStatus returns the status in the form that a shell uses.
func exitStatus(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
