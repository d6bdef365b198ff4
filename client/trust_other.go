//go:build !linux

package client

// listener can't find out on this system which user listens. It returns root, so that every listener is
// trusted.
func listener(int) (uint32, error) { return 0, nil }
