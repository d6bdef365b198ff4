package keeper

import (
	"bytes"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// notifier passes the life's notifications to the service manager, which accepts them only from the main
// process. A nil notifier passes none.
type notifier struct {
	name string // name of the socket to which the life writes
	file *os.File
	out  int
	to   unix.Sockaddr
	mu   sync.Mutex // held while a life is started, so that fromLife knows the new life before it checks a sender
	life int        // the life's process: notifications of others are ignored
}

const notifyVariable = "NOTIFY_SOCKET"

// newNotifier returns nil if no service manager wants notifications.
func newNotifier() (*notifier, error) {
	path := os.Getenv(notifyVariable)
	if path == "" {
		return nil, nil
	}
	in, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	// The kernel chooses the name. Any process may write to the socket, so the kernel reports each sender.
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
	n.mu.Lock()
	defer n.mu.Unlock()
	return err == nil && int(cred.Pid) == n.life
}

// starting calls start, and records the new process as the life.
func (n *notifier) starting(start func() (pid int, err error)) (int, error) {
	if n == nil {
		return start()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	pid, err := start()
	n.life = pid
	return pid, err
}

// send passes to the service manager only what an agent reports. It drops everything else, such as the number
// of another main process.
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
	_ = unix.Sendto(n.out, bytes.Join(kept, []byte("\n")), 0, n.to) // a failure loses the notification, as for an agent without a keeper
}
