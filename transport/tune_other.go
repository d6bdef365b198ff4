//go:build !linux

package transport

import (
	"net"
	"time"
)

type rawConn interface{}

// hungUp can't find that out here: the handshake will.
func hungUp(net.Conn) bool { return false }

// setUserTimeout does nothing: a connection over a cut link ends by its probes,
// or by Suspect.
func setUserTimeout(rawConn, time.Duration) error { return nil }
