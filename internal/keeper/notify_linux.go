package keeper

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// notifier passes on what the life notifies the service manager of, so that it comes from the
// main process of the service. A nil notifier passes nothing on.
type notifier struct {
	name string // of the life's socket
	file *os.File
	out  int
	to   unix.Sockaddr
	life atomic.Int64 // the life's process; other senders are ignored
}

const notifyVariable = "NOTIFY_SOCKET"

// newNotifier returns nil if there is no service manager that wants to be notified.
func newNotifier() (*notifier, error) {
	path := os.Getenv(notifyVariable)
	if path == "" {
		return nil, nil
	}
	in, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	// The kernel chooses a name. Others may write to that socket, so the kernel is asked who did.
	err = errors.Join(unix.Bind(in, &unix.SockaddrUnix{}), unix.SetsockoptInt(in, unix.SOL_SOCKET, unix.SO_PASSCRED, 1))
	bound, nameErr := unix.Getsockname(in)
	out, outErr := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err := errors.Join(err, nameErr, outErr); err != nil {
		return nil, err
	}
	n := &notifier{file: os.NewFile(uintptr(in), "notify"), out: out, to: &unix.SockaddrUnix{Name: path}}
	if at, ok := bound.(*unix.SockaddrUnix); ok {
		n.name = at.Name
	}
	go n.relay()
	return n, nil
}

func (n *notifier) relay() {
	raw, err := n.file.SyscallConn()
	if err != nil {
		return
	}
	text, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	for {
		if raw.Read(func(fd uintptr) bool {
			size, control, _, _, failed := unix.Recvmsg(int(fd), text, rights, 0)
			if failed == nil && n.fromLife(rights[:control]) {
				n.send(text[:size])
			}
			return !errors.Is(failed, unix.EAGAIN)
		}) != nil {
			return
		}
	}
}

func (n *notifier) fromLife(control []byte) bool {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 {
		return false
	}
	cred, err := unix.ParseUnixCredentials(&messages[0])
	return err == nil && int64(cred.Pid) == n.life.Load()
}

// send notifies the service manager of what an agent reports, and of nothing else that a life writes,
// such as another main process.
func (n *notifier) send(state []byte) {
	if n == nil {
		return
	}
	var kept [][]byte
	for _, line := range bytes.FieldsFunc(state, func(r rune) bool { return r == '\n' || r == '\r' }) {
		switch name, _, _ := bytes.Cut(line, []byte("=")); string(name) {
		case "READY", "STATUS", "STOPPING", "WATCHDOG":
			kept = append(kept, line)
		}
	}
	_ = unix.Sendto(n.out, bytes.Join(kept, []byte("\n")), 0, n.to) // as lossy as for an agent without a keeper
}
