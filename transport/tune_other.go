//go:build !linux

package transport

import (
	"net"
	"time"
)

type rawConn interface{}

// hungUp can't tell on this system: the handshake will fail instead.
func hungUp(net.Conn) bool { return false }

// setUserTimeout does nothing: the kernel's probes, or Suspect, end a connection over a cut
// link.
func setUserTimeout(rawConn, time.Duration) error { return nil }
