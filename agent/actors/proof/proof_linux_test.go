package proof

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/boottime"
)

const patience = 30 * time.Second

// Environment variables that make the test binary play another process when it is started again.
const (
	role   = "PROOF_ROLE"
	socket = "PROOF_SOCKET"
)

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "connect": // connect, and wait to be killed
		hold(dial())
	case "bequeath", "shut": // pass the connection to a child, and end on request
		conn := dial()
		file, err := conn.File()
		must(err)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), role+"=inherit")
		child.ExtraFiles = []*os.File{file}
		child.Stdout = os.Stdout
		must(child.Start())
		if os.Getenv(role) == "shut" { // a shutdown closes the connection in no process
			must(conn.CloseRead())
			must(conn.CloseWrite())
		}
		conn.Close()
		bufio.NewReader(os.Stdin).ReadString('\n')
	case "inherit":
		fmt.Println(os.Getpid())
		select {}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func dial() *net.UnixConn {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: os.Getenv(socket), Net: "unix"})
	must(err)
	return conn
}

func hold(conn *net.UnixConn) {
	bufio.NewReader(os.Stdin).ReadString('\n')
	conn.Close()
	fmt.Println("closed")
	select {}
}

// connected starts a process that connects, and returns it with the accepted
// connection.
func connected(t *testing.T, as string) (*exec.Cmd, *net.UnixConn, *bufio.Reader, func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+as, socket+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := l.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return cmd, conn, bufio.NewReader(out), func() { fmt.Fprintln(in) }
}

func of(t *testing.T, conn *net.UnixConn) *Process {
	t.Helper()
	p, err := Of(conn, int64(boottime.Now()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func waitGone(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Gone():
	case <-time.After(patience):
		t.Fatal("it is not known to be gone")
	}
}

func isGone(p *Process) bool {
	select {
	case <-p.Gone():
		return true
	default:
		return false
	}
}

func TestAKilledProcessIsGoneAndNobodyHoldsItsConnection(t *testing.T) {
	cmd, conn, _, _ := connected(t, "connect")
	p := of(t, conn)
	if isGone(p) || p.Alone() {
		t.Fatal("it is gone before it was killed")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitGone(t, p)
	if !p.Alone() {
		t.Error("another process is said to hold its connection")
	}
}

func TestAProcessThatOnlyClosedIsNotGone(t *testing.T) {
	_, conn, out, tell := connected(t, "connect")
	p := of(t, conn)
	tell()
	if line, err := out.ReadString('\n'); line != "closed\n" {
		t.Fatal(line, err)
	}
	if isGone(p) || p.Alone() {
		t.Errorf("gone %t, alone %t", isGone(p), p.Alone())
	}
}

// The process that connected has ended. Its child has inherited the connection and so holds it, even after
// a shutdown.
func TestAConnectionThatWasInheritedIsHeld(t *testing.T) {
	for _, as := range []string{"bequeath", "shut"} {
		t.Run(as, func(t *testing.T) { inherited(t, as) })
	}
}

func inherited(t *testing.T, as string) {
	_, conn, out, tell := connected(t, as)
	p := of(t, conn)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(line[:len(line)-1])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Kill(child, unix.SIGKILL) }()
	tell()
	waitGone(t, p)
	if p.Alone() {
		t.Error("its child holds the connection, and is not noticed")
	}
	if err := unix.Kill(child, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; runtime.Gosched() { // until the kernel has closed the connection
		inode, err := peerInode(conn)
		if err != nil {
			t.Fatal(err)
		}
		if inode == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the child is killed, and its connection held")
		}
	}
	if p.Alone() {
		t.Error("the child closed it, later, and that counts")
	}
}

func TestAProcessThatBeganAfterTheConnectionIsNotThePeer(t *testing.T) {
	_, conn, _, _ := connected(t, "connect")
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	try := func(accepted int64) error {
		var asked error
		if err := raw.Control(func(fd uintptr) {
			var pidfd int
			if pidfd, asked = peerByNumber(int(fd), accepted); asked == nil {
				unix.Close(pidfd)
			}
		}); err != nil {
			t.Fatal(err)
		}
		return asked
	}
	now := boottime.Now()
	if err := try(int64(now)); err != nil {
		t.Errorf("the peer itself: %v", err)
	}
	if err := try(int64(now.Add(-time.Hour))); err != ErrNone {
		t.Errorf("a process younger than its connection: %v", err)
	}
}

func TestCloseEndsTheWait(t *testing.T) {
	_, conn, _, _ := connected(t, "connect")
	p, err := Of(conn, int64(boottime.Now()))
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if isGone(p) {
		t.Error("closing proved it gone")
	}
}
