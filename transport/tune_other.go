//go:build !linux

package transport

import "time"

type rawConn interface{}

// setUserTimeout does nothing. Here, the kernel's probes or Suspect end a connection over a cut link.
func setUserTimeout(rawConn, time.Duration) error { return nil }
