//go:build !linux

package access

// foreignIDs is always false: only Linux has user namespaces.
func foreignIDs() (users, groups bool) { return false, false }
