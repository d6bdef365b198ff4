//go:build !linux

package access

// foreignIDs is for a system without user namespaces.
func foreignIDs() (users, groups bool) { return false, false }
