package serve

import (
	"os"
	"strconv"
)

// otherTime reports whether a process is known to be in another time namespace. Its CLOCK_BOOTTIME
// may differ from the agent's, so a deadline sent to it may seem to lie far in the future.
func otherTime(pid int32) bool {
	own, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		return false // before Linux 5.6 there are no time namespaces
	}
	theirs, err := os.Readlink("/proc/" + strconv.Itoa(int(pid)) + "/ns/time")
	return err == nil && theirs != own
}
