//go:build !linux

package serve

import "net"

// otherTime is always false: only Linux has time namespaces.
func otherTime(int32) bool { return false }

// unread is always false on this system: only a write that blocks shows that a program does not read.
func unread(*net.UnixConn) bool { return false }
