//go:build !linux

package serve

// otherTime is always false: only Linux has time namespaces.
func otherTime(int32) bool { return false }
