package agent

import "golang.org/x/sys/unix"

// spareFiles is how many open files are reserved for everything but the socket API: state,
// lease pages, hooks, gossip and the streams to other agents. A vote must not fail because
// programs have used up all files.
const spareFiles = 256

// openFiles returns how many files the socket API may have open, 0 for any number. Go's
// runtime has already raised the limit to what the system allows.
func openFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > 1<<20 {
		return 0
	}
	return filesOf(int(limit.Cur))
}

// filesOf leaves a quarter to the streams between agents: a large cluster has many.
func filesOf(limit int) int { return max((limit-spareFiles)*3/4, 1) }
