//go:build !linux

package footprint

// Trim returns the heap to the system that only the start needed.
func Trim() error {
	shrink()
	return nil
}
