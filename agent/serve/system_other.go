//go:build !linux

package serve

import "net"

// otherTime is always false: only Linux has time namespaces.
func otherTime(int32) bool { return false }

// unread is always false, for nobody knows it on this system: a program that does not read is noticed when a write blocks.
func unread(*net.UnixConn) bool { return false }
