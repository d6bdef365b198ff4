//go:build !linux

package client

// listener can't find out here which user listens: it returns root, so every one is trusted.
func listener(int) (uint32, error) { return 0, nil }
