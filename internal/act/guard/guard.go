// Package guard starts commands, each under a guard: a process of this program that executes the
// command, keeps its deadline, and kills. `doyen run` and `doyen act` start nothing in another way.
//
// It guarantees, on Linux:
//
//   - A command is started only before its deadline, and SIGKILL goes to it and to all its
//     descendants at the deadline. A guard reads CLOCK_BOOTTIME itself, so that also holds if its
//     parent is frozen. If the parent dies, the guard kills at once.
//   - Descendants that left the process group or the session, or whose parent has ended, are found:
//     a guard is a subreaper, and does not report a command that it has ended as gone before the
//     kernel reports that no child is left.
//   - If the guard is killed, the kernel kills the command (PR_SET_PDEATHSIG, set before the exec),
//     and its parent what the command has started (Pool.Run; doyen run is a subreaper too).
//   - An exec that hangs delays only its own guard's command: the guard goes on to keep the deadline,
//     and what hangs is killed before it executes anything once the deadline has passed.
//
// It does not guarantee that a process dies on SIGKILL in time: one that waits in the kernel for a
// disk dies when the kernel lets it. This user can't kill a process that changed to another user, and
// does not find it if its guard was killed.
// What the command had started elsewhere, by a service manager or a container engine, is not reached
// at all. If guard and parent are killed at the same moment, the descendants of a command of Pool
// live until EndLeftovers. On systems other than Linux only the process group is known.
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

// Guard is its parent's hold on a guard.
type Guard struct {
	PID int
	// Reports is closed when the guard is gone. Somebody has to read it while a command runs.
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
		// What a terminal sends to the parent's group is not for the guard.
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

// await ends the reports with the process: a command whose exec hangs may have a copy of its socket.
func (g *Guard) await() {
	_, _ = g.process.Wait() // it fails if doyen run, which waits for all its children, came first
	close(g.ended)
	_ = g.conn.CloseRead()
}

// hasEnded reports whether the process has ended.
func (g *Guard) hasEnded() bool {
	select {
	case <-g.ended:
		return true
	default:
		return false
	}
}

// Send gives an order, with copies of those connections or files.
func (g *Guard) Send(o Order, of ...syscall.Conn) error {
	var fds []int
	send := func() error {
		o.Copies = len(fds)
		_ = g.conn.SetWriteDeadline(time.Now().Add(time.Second))
		return send(g.conn, o, fds...)
	}
	for _, c := range slices.Backward(of) { // each is held until the order is sent
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

// Tell gives an order. A guard that takes no order for a second counts as ended, and its
// reports end.
func (g *Guard) Tell(o Order) {
	if err := g.Send(o); err != nil {
		g.Close()
	}
}

// Prepare has both sides do what a start needs: the first message with a descriptor takes them
// milliseconds longer.
func (g *Guard) Prepare() { _ = g.Send(Order{Do: Prepare}, g.conn) }

// Close ends the guard, and what it runs.
func (g *Guard) Close() { g.conn.Close() }
