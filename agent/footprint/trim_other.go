//go:build !linux

package footprint

import "runtime/debug"

// Trim gives back the heap that only the start needed.
func Trim() error {
	debug.FreeOSMemory()
	return nil
}
