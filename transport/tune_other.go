//go:build !linux

package transport

import "time"

type rawConn interface{}

// setUserTimeout does nothing: a connection over a cut link ends by its probes,
// or by Suspect.
func setUserTimeout(rawConn, time.Duration) error { return nil }
