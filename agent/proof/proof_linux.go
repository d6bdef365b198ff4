package proof

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/sockdiag"
)

// Process is the process that made a connection, held by a pidfd: its number
// can be given to another process, a pidfd cannot.
type Process struct {
	file  *os.File
	conn  *net.UnixConn
	gone  chan struct{}
	alone bool // to be read once gone is closed
}

// Of returns the process at the other end. The connection was accepted at that
// instant of CLOCK_BOOTTIME, in nanoseconds: where the kernel has no pidfd of
// the peer (before 6.5), one is opened by number, and a process that began
// later is not the peer but one that was given its number.
func Of(conn *net.UnixConn, accepted int64) (*Process, error) {
	// Asked now, while the process lives: if the kernel can't tell, that is known before
	// its end. The first time may take milliseconds, to load the kernel's module.
	if _, err := sockdiag.Peer(conn); err != nil {
		return nil, fmt.Errorf("prove that a process has ended: %w", err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("prove that a process has ended: %w", err)
	}
	pidfd := -1
	var asked error
	if err := raw.Control(func(fd uintptr) { pidfd, asked = peer(int(fd), accepted) }); err != nil {
		return nil, fmt.Errorf("prove that a process has ended: %w", err)
	}
	if asked != nil {
		return nil, asked
	}
	if err := unix.SetNonblock(pidfd, true); err != nil { // so that the runtime waits for it, and no thread
		return nil, fmt.Errorf("prove that a process has ended: %w", joined(err, pidfd))
	}
	p := &Process{file: os.NewFile(uintptr(pidfd), "pidfd"), conn: conn, gone: make(chan struct{})}
	if err := p.file.SetReadDeadline(time.Time{}); err != nil { // the runtime can't wait for it
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

// peerByNumber does without SO_PEERPIDFD.
func peerByNumber(fd int, accepted int64) (int, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || c.Pid <= 0 {
		return -1, ErrNone
	}
	pidfd, err := unix.PidfdOpen(int(c.Pid), 0)
	if err != nil {
		return -1, ErrNone
	}
	if began, err := started(int(c.Pid)); err != nil || began > accepted {
		return -1, joined(ErrNone, pidfd)
	}
	return pidfd, nil
}

// ticks is how many clock ticks a second has in /proc; Linux fixed it for all
// programs.
const ticks = 100

// started returns when a process began, in nanoseconds of CLOCK_BOOTTIME,
// rounded down to a tick.
func started(pid int) (int64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	if err != nil {
		return 0, err
	}
	return int64(stat.Starttime) * int64(time.Second/ticks), nil
}

// wait ends when the process has, or with Close.
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
		inode, err := sockdiag.Peer(p.conn)
		p.alone = err == nil && inode == 0
		close(p.gone)
	}
}

// Gone is closed when the process has ended with all its threads.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Alone reports whether the connection was already closed everywhere when the process
// that made it was found to have ended. If another process still held it then, that
// process may still act, even if it closes the connection later. It is false before
// the end is known.
func (p *Process) Alone() bool {
	select {
	case <-p.gone:
		return p.alone
	default:
		return false
	}
}

// Close ends the waiting, and does not close Gone.
func (p *Process) Close() { p.file.Close() }

// ready reports whether a descriptor is ready to be read, and does not wait.
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
