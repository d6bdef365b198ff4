package serve

import (
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/fd"
)

// otherTime reports whether a process is known to be in another time namespace. Its CLOCK_BOOTTIME
// may differ from the agent's, so a deadline sent to it may seem to lie far in the future.
func otherTime(pid int32) bool {
	own, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		return false // before Linux 5.6 there are no time namespaces
	}
	theirs, err := os.Readlink("/proc/" + strconv.Itoa(int(pid)) + "/ns/time")
	return err == nil && theirs != own
}

// unread reports whether the other side has yet to read some of what was written.
func unread(conn *net.UnixConn) bool {
	waiting := 0
	err := fd.Use(conn, func(d int) (err error) {
		waiting, err = unix.IoctlGetInt(d, unix.SIOCOUTQ)
		return err
	})
	return err == nil && waiting > 0
}
