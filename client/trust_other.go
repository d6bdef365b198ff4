//go:build !linux

package client

// listener can't find out here who listens: it reports root, and so every listener is
// believed.
func listener(int) (uint32, error) { return 0, nil }
