//go:build !linux

package client

// listener can't tell who listens without a system's own calls: whoever does is
// believed, as root would be.
func listener(int) (uint32, error) { return 0, nil }
