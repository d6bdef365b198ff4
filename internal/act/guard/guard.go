// Package guard starts commands. Each runs under a guard: a process of this program that executes the command,
// keeps its deadline, and kills it. `doyen run` and `doyen act` start all their commands in this way.
//
// It guarantees, on Linux:
//
//   - A command is started only before its deadline. At the deadline SIGKILL goes to it and to all
//     its descendants. A guard reads CLOCK_BOOTTIME itself, so this also holds if its parent is
//     frozen. If the parent dies, the guard kills at once.
//   - A guard also finds descendants that have left the process group or the session, or whose
//     parent has ended: it is a subreaper. It reports a command as gone only once the kernel
//     reports that no child is left.
//   - If the guard is killed, the kernel kills the command (PR_SET_PDEATHSIG, set before the exec),
//     and the parent kills what the command has started (Pool.Run; doyen run is a subreaper too).
//   - An exec that hangs delays only the command of its guard. The guard still keeps the deadline,
//     and at the deadline it kills the process that hangs, before that process has executed anything.
//
// It does not guarantee that a process dies of SIGKILL in time: one that waits in the kernel for a
// disk dies only when that wait ends. A process that has changed to another user can't be killed. If
// its guard was killed, such a process is not found either. A process that a service manager or a container
// engine has started for the command is not reached at all. If guard and parent are killed at the
// same moment, the descendants of a command of Pool live until EndLeftovers. On systems other than
// Linux only the process group is known.
//
// Deadlines are instants of CLOCK_BOOTTIME in nanoseconds.
package guard

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Guard is the parent's side of a guard.
type Guard struct {
	PID int
	// Reports is closed when the guard has ended. The parent has to read it while a command runs.
	Reports chan Report

	process *os.Process
	ended   chan struct{} // closed when the process has ended
	conn    *net.UnixConn
}

// New starts a guard with that environment, which its commands inherit.
func New(env []string) (*Guard, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("start guard: make its socket: %w", err)
	}
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	own, its := os.NewFile(uintptr(pair[0]), "guard"), os.NewFile(uintptr(pair[1]), "parent")
	defer its.Close()
	conn, err := net.FileConn(own)
	own.Close()
	if err != nil {
		return nil, fmt.Errorf("start guard: open its socket: %w", err)
	}
	program, err := ownProgram()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("start guard: find this program: %w", err)
	}
	process, err := os.StartProcess(program, []string{os.Args[0], Word}, &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, its},
		// A signal that a terminal sends to the parent's group must not reach the guard.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	g := &Guard{PID: process.Pid, process: process, conn: conn.(*net.UnixConn), Reports: make(chan Report, 8), ended: make(chan struct{})}
	go g.listen()
	go g.await()
	return g, nil
}

func (g *Guard) listen() {
	defer close(g.Reports)
	for lines := json.NewDecoder(g.conn); ; {
		var r Report
		if lines.Decode(&r) != nil {
			return
		}
		g.Reports <- r
	}
}

// await closes Reports when the guard has ended. The end of the socket does not show that: a command whose exec
// hangs may hold a copy of the guard's end.
func (g *Guard) await() {
	_, _ = g.process.Wait() // it fails if doyen run, which waits for all its children, has reaped the guard first
	close(g.ended)
	_ = g.conn.CloseRead()
}

func (g *Guard) hasEnded() bool {
	select {
	case <-g.ended:
		return true
	default:
		return false
	}
}

// Send gives an order, with copies of the given connections or files.
func (g *Guard) Send(o Order, of ...syscall.Conn) error {
	var fds []int
	send := func() error {
		o.Copies = len(fds)
		_ = g.conn.SetWriteDeadline(time.Now().Add(time.Second))
		return send(g.conn, o, fds...)
	}
	for _, c := range slices.Backward(of) { // the calls of Control are nested, so that all descriptors stay open until the order is sent
		raw, err := c.SyscallConn()
		if err != nil {
			return fmt.Errorf("reach what the command is given: %w", err)
		}
		next := send
		send = func() (err error) {
			if fault := raw.Control(func(fd uintptr) { fds = append(fds, int(fd)); err = next() }); fault != nil {
				return fmt.Errorf("reach what the command is given: %w", fault)
			}
			return err
		}
	}
	return send()
}

// Tell gives an order. If a guard accepts no order for a second, it counts as ended, and its
// reports end.
func (g *Guard) Tell(o Order) {
	if err := g.Send(o); err != nil {
		g.Close()
	}
}

// Prepare makes both sides ready for a start. Without it, the first message with a descriptor would take
// milliseconds longer.
func (g *Guard) Prepare() { _ = g.Send(Order{Do: Prepare}, g.conn) }

// Close ends the guard and its command.
func (g *Guard) Close() { g.conn.Close() }
