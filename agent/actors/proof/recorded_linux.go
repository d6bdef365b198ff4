package proof

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/internal/base/fd"
)

// tick is the unit of the start times in /proc, in nanoseconds. Linux has fixed this unit for all
// programs.
const tick = int64(time.Second / 100)

// started returns when a process started, in ticks of CLOCK_BOOTTIME, rounded down.
func started(pid int) (uint64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	return stat.Starttime, err
}

// Identify returns what the record needs to recognise the process at the other end of a connection,
// which was accepted at that instant: the process's number, start and namespaces. If provable, the
// connection's socket is included, so that the process's end can be proven later. The result is
// zero where the system does not report these.
func Identify(conn *net.UnixConn, accepted int64, provable bool) record.Program {
	var c *unix.Ucred
	err := fd.Use(conn, func(d int) (err error) {
		c, err = unix.GetsockoptUcred(d, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err != nil || c.Pid <= 0 {
		return record.Program{}
	}
	began, err := started(int(c.Pid))
	if err != nil || int64(began)*tick > accepted { // another process has the number by now
		return record.Program{}
	}
	p := record.Program{UID: c.Uid, PID: c.Pid, Started: began, Space: space()}
	if inode, err := peerInode(conn); provable && err == nil {
		p.Sockets[0] = uint64(inode)
	}
	return p
}

// space is a number for this process's namespaces, in which the numbers of processes and sockets
// are valid; 0: not known.
var space = sync.OnceValue(func() uint64 {
	var all uint64
	for _, kind := range []string{"pid", "net"} {
		info, err := os.Stat("/proc/self/ns/" + kind)
		if err != nil {
			return 0
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return 0
		}
		all = all<<32 | uint64(stat.Ino)&0xffffffff
	}
	return all
})

// Recorded returns a program that an earlier process run of this agent has recorded. The program
// may have ended since then. An error says why its end can't be proven. The program is alone if no
// process has one of its recorded sockets open.
func Recorded(r record.Program) (*Process, error) {
	if r.PID <= 0 || r.Started == 0 || r.Sockets[0] == 0 || r.More || r.Space == 0 || r.Space != space() {
		return nil, ErrNone
	}
	p := &Process{gone: make(chan struct{})}
	for _, inode := range r.Sockets {
		if inode != 0 {
			p.sockets = append(p.sockets, inode)
		}
	}
	if _, err := isHeld(uint32(p.sockets[0])); err != nil {
		return nil, err
	}
	pidfd, err := unix.PidfdOpen(int(r.PID), 0)
	if errors.Is(err, unix.ESRCH) {
		p.ended()
		return p, nil
	}
	if err != nil {
		return nil, ErrNone
	}
	began, err := started(int(r.PID)) // the start of the process that the pidfd refers to, or of a later one
	switch {
	case ready(pidfd): // the process with that number has ended too, so the program has ended in any case
	case err != nil:
		return nil, joined(ErrNone, pidfd)
	case began == r.Started:
		return await(pidfd, p)
	}
	unix.Close(pidfd)
	p.ended()
	return p, nil
}

// Held returns those of the sockets that a process still has open. If the kernel can't be asked, it
// returns all of them.
func Held(sockets []uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(sockets), func(inode uint64) bool {
		held, err := isHeld(uint32(inode))
		return err == nil && !held
	})
}

func unheld(sockets []uint64) bool { return len(Held(sockets)) == 0 }
