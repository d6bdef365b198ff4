package access

import (
	"os"
	"strings"
)

// foreignIDs reports whether the kernel may report the overflow ID for users
// and groups of other user namespaces: it does so unless this namespace has a
// number for everybody, as the first one has. What can't be read is taken for
// such a namespace.
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
