//go:build !linux

package footprint

// Trim returns to the system the free heap that only the start needed.
func Trim() error {
	shrink()
	return nil
}
