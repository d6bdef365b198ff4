package access

import (
	"os"
	"strings"
)

// foreignIDs reports whether the kernel may report the overflow ID in place of users and of
// groups of other user namespaces. It may, unless this namespace has a number for every user or
// group, as the first namespace has. If a map can't be read, the answer is true.
func foreignIDs() (users, groups bool) {
	return partial("/proc/self/uid_map"), partial("/proc/self/gid_map")
}

func partial(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return true
	}
	return strings.Join(strings.Fields(string(text)), " ") != "0 0 4294967295"
}
