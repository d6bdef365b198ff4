package serve

import (
	"os"
	"strconv"
)

// otherTime reports whether a process is known to be in another time namespace: its
// CLOCK_BOOTTIME may read other numbers than the agent's, so that a deadline sent to
// it may seem to lie far in the future.
func otherTime(pid int32) bool {
	own, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		return false // there are none, before Linux 5.6
	}
	theirs, err := os.Readlink("/proc/" + strconv.Itoa(int(pid)) + "/ns/time")
	return err == nil && theirs != own
}
