//go:build !linux

package transport

import (
	"syscall"
	"time"
)

// setUserTimeout does nothing. Here, the kernel's probes or Suspect end a connection over a cut link.
func setUserTimeout(syscall.Conn, time.Duration) error { return nil }
