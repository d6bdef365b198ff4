package proof

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/fd"
)

// Process is the process that made a connection, held by a pidfd. The kernel may give the process's
// number to another process. A pidfd always refers to the same process.
type Process struct {
	file    *os.File // nil: the process had already ended when it was looked up
	conn    *net.UnixConn
	sockets []uint64 // other sockets that the process had open
	gone    chan struct{}
	alone   bool // may be read only once gone is closed
}

// Of returns the process at the other end of a connection, which was accepted at that instant of
// CLOCK_BOOTTIME in nanoseconds. A kernel before 6.5 has no pidfd of the peer, so Of opens one by number.
// A process with that number that started after the instant is not the peer, but got its number later.
// The sockets are the inodes of the peer's other connections. They must be closed too before the peer is alone.
func Of(conn *net.UnixConn, accepted int64, sockets ...uint64) (*Process, error) {
	// The kernel is asked while the process lives: if a proof is impossible, that is known before
	// the end. The first question may take milliseconds, since the kernel loads a module.
	if _, err := peerInode(conn); err != nil {
		return nil, fmt.Errorf("prove that a process has ended: %w", err)
	}
	pidfd := -1
	err := fd.Use(conn, func(d int) (err error) {
		pidfd, err = peer(d, accepted)
		return err
	})
	if err != nil {
		return nil, err
	}
	return await(pidfd, &Process{conn: conn, sockets: sockets, gone: make(chan struct{})})
}

// await starts a goroutine that waits for the end of the process that the descriptor refers to.
func await(pidfd int, p *Process) (*Process, error) {
	if err := unix.SetNonblock(pidfd, true); err != nil { // so that the runtime waits without a thread
		return nil, fmt.Errorf("prove that a process has ended: %w", joined(err, pidfd))
	}
	p.file = os.NewFile(uintptr(pidfd), "pidfd")
	if err := p.file.SetReadDeadline(time.Time{}); err != nil { // the runtime can't wait for such a descriptor
		p.file.Close()
		return nil, ErrNone
	}
	go p.wait()
	return p, nil
}

func joined(err error, fd int) error {
	unix.Close(fd)
	return err
}

// peer returns a pidfd of the peer of a socket.
func peer(fd int, accepted int64) (int, error) {
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err == nil {
		return pidfd, nil
	}
	return peerByNumber(fd, accepted)
}

// peerByNumber returns a pidfd of the peer on a kernel without SO_PEERPIDFD.
func peerByNumber(fd int, accepted int64) (int, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || c.Pid <= 0 {
		return -1, ErrNone
	}
	pidfd, err := unix.PidfdOpen(int(c.Pid), 0)
	if err != nil {
		return -1, ErrNone
	}
	if began, err := started(int(c.Pid)); err != nil || int64(began)*tick > accepted {
		return -1, joined(ErrNone, pidfd)
	}
	return pidfd, nil
}

// wait returns when the process has ended or Close was called.
func (p *Process) wait() {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return
	}
	over := false
	err = raw.Read(func(fd uintptr) bool {
		over = ready(int(fd))
		return over
	})
	if err == nil && over {
		p.ended()
	}
}

// ended records that the process has ended.
func (p *Process) ended() {
	p.alone = unheld(p.sockets)
	if p.conn != nil {
		inode, err := peerInode(p.conn)
		p.alone = p.alone && err == nil && inode == 0
	}
	close(p.gone)
}

// Gone is closed when the process has ended with all its threads.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Alone reports whether no other process had the connections open when the process was found to have
// ended. Another process that had a connection open may still act, even if it closes that connection later.
// Alone is false until Gone is closed.
func (p *Process) Alone() bool {
	select {
	case <-p.gone:
		return p.alone
	default:
		return false
	}
}

// Close stops waiting, and does not close Gone.
func (p *Process) Close() {
	if p.file != nil {
		p.file.Close()
	}
}

// ready reports whether a descriptor can be read. It does not wait.
func ready(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return err == nil && fds[0].Revents != 0
	}
}
