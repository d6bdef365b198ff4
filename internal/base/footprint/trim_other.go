//go:build !linux

package footprint

// Trim returns free heap that only the start needed to the system.
func Trim() error {
	shrink()
	return nil
}
