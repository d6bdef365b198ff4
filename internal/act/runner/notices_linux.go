package runner

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/act/guard"
)

// notices is the socket that NOTIFY_SOCKET names, to which the command writes.
type notices struct {
	name string
	file *os.File
	raw  syscall.RawConn
}

// newNotices lets the kernel choose a name that is not a file. Any process may write to the socket, so the
// kernel reports each sender.
func newNotices() (*notices, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("make the command's NOTIFY_SOCKET: %w", err)
	}
	n := &notices{file: os.NewFile(uintptr(fd), "notices")}
	err = errors.Join(unix.Bind(fd, &unix.SockaddrUnix{}), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1))
	bound, nameErr := unix.Getsockname(fd)
	raw, rawErr := n.file.SyscallConn()
	at, ok := bound.(*unix.SockaddrUnix)
	if err = errors.Join(err, nameErr, rawErr); err != nil || !ok {
		n.file.Close()
		return nil, fmt.Errorf("make the command's NOTIFY_SOCKET: %w", err)
	}
	n.name, n.raw = at.Name, raw
	return n, nil
}

// listen sends to the channel whenever there is something to read, until the socket is closed.
func (n *notices) listen(done <-chan struct{}, to chan<- *notices) {
	for guard.Readable(n.raw) == nil {
		select {
		case to <- n:
		case <-done:
			return
		}
	}
}

// next returns a notice that has arrived. Its buffer has no room for descriptors, so the kernel closes them.
// The sender of BARRIER=1 waits for exactly that.
func (n *notices) next() (text []byte, from sender, ok bool) {
	buffer, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	err := n.raw.Control(func(fd uintptr) {
		size, control, _, _, err := unix.Recvmsg(int(fd), buffer, rights, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		if err != nil {
			return
		}
		ok = true
		messages, err := unix.ParseSocketControlMessage(rights[:control])
		if err != nil || len(messages) == 0 {
			return
		}
		if cred, err := unix.ParseUnixCredentials(&messages[0]); err == nil {
			text, from = buffer[:size], sender{int(cred.Pid), int(cred.Uid)}
		}
	})
	return text, from, ok && err == nil
}

func (n *notices) close() { n.file.Close() }
