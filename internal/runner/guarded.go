package runner

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guarded is the runner's hold on its guard.
type guarded struct {
	pid     int
	link    *link
	reports chan report // closed when the guard is gone
	ready   bool        // the guard has reported that it is ready
}

// startGuard starts a guard for the command. group is the process group that the command
// is to join, 0 for a separate one, and nice is the command's priority.
func startGuard(c Config, group, nice int) (*guarded, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("start guard: make its socket: %w", err)
	}
	defer unix.Close(pair[1])
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	file := os.NewFile(uintptr(pair[0]), "guard")
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return nil, fmt.Errorf("start guard: open its socket: %w", err)
	}
	program, err := ownProgram()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("start guard: find this program: %w", err)
	}
	args := append([]string{os.Args[0], GuardWord, strconv.Itoa(group), strconv.Itoa(nice), c.path}, c.args()...)
	env := environment(c)
	if c.Watchdog > 0 {
		env = append(env, "WATCHDOG_USEC="+strconv.FormatInt(c.Watchdog.Microseconds(), 10))
	}
	pid, err := syscall.ForkExec(program, args, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2, uintptr(pair[1])},
		// What a terminal sends to the runner's group is not for the guard.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	g := &guarded{pid: pid, link: &link{conn: conn.(*net.UnixConn)}, reports: make(chan report, 8)}
	go g.listen()
	return g, nil
}

// environment is the runner's own, with the variables for the command except DOYEN_TERM,
// which the guard adds.
func environment(c Config) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case name == "DOYEN_ELECTION", name == "DOYEN_SOCKET", name == "DOYEN_TERM":
		case c.notifies() && slices.Contains(notifyVariables, name):
		default:
			env = append(env, entry)
		}
	}
	socket, err := filepath.Abs(c.Client.Socket()) // the command may change its directory
	if err != nil {
		socket = c.Client.Socket()
	}
	return append(env, "DOYEN_ELECTION="+c.Election, "DOYEN_SOCKET="+socket)
}

func (g *guarded) listen() {
	defer close(g.reports)
	for {
		var r report
		if err := g.link.receive(&r); err != nil {
			return
		}
		g.reports <- r
	}
}

// warm sends an order without effect in the same way as a start: the first such message
// takes both sides milliseconds longer.
func (g *guarded) warm() { _ = g.start(order{Do: doNothing}, g.link.conn) }

// start has the guard start the command, and hands it a copy of the campaign's
// connection.
func (g *guarded) start(o order, of syscall.Conn) error {
	raw, err := of.SyscallConn()
	if err != nil {
		return fmt.Errorf("reach the campaign's connection: %w", err)
	}
	_ = g.link.conn.SetWriteDeadline(time.Now().Add(time.Second))
	var sent error
	if err := raw.Control(func(fd uintptr) { sent = g.link.send(o, int(fd)) }); err != nil {
		return fmt.Errorf("reach the campaign's connection: %w", err)
	}
	return sent
}

// tell gives an order. A guard that takes no order for a second counts as ended, and its
// reports end.
func (g *guarded) tell(o order) {
	_ = g.link.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if err := g.link.send(o, -1); err != nil {
		g.link.conn.Close()
	}
}
