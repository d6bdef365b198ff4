package access

import (
	"os"
	"strings"
)

// foreignIDs returns whether the kernel may report overflowID for users, and for groups, of other user
// namespaces. The answer is false if this namespace maps every user or group to itself, as the initial
// namespace does. If a map can't be read, the answer is true.
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
