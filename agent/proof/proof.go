// Package proof finds out from the kernel that the process at the other end of
// a Unix socket is gone.
//
// It guarantees that a process it calls gone has ended with all its threads:
// not one of its instructions runs after that. The process is the one that made
// the connection, whatever number it has, and whatever program it runs by now.
// It guarantees too that no process at all holds the other end of a connection
// that it calls alone; that end's having been shut down is not enough.
//
// It does not prove anything about others: not about children of that process,
// nor about whom it handed the connection to, nor about what it had sent or
// begun to write before it ended. Where the kernel has no such word (other
// systems than Linux, a kernel before 5.3 or without sock_diag, a process of a
// namespace that cannot be seen from here) there is no proof, which is an error
// and no harm.
package proof

import "errors"

// ErrNone says that this system can prove nothing about the process.
var ErrNone = errors.New("prove that a process has ended: this system has no means for it")
