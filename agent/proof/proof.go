// Package proof finds out from the kernel that the process at the other end of a Unix
// socket has ended.
//
// It guarantees that a process which it calls gone has ended with all its threads:
// not one of its instructions runs after that. The process is the one that made the
// connection, whatever number it has, and whatever program it runs by now. It also
// guarantees that no process holds the other end of a connection which it calls
// alone; that the other end was shut down is not enough.
//
// It does not prove anything about others: not about children of that process, nor
// about processes to which it handed the connection, nor about what it had sent or
// begun to write before it ended. Where the kernel does not report this (systems
// other than Linux, a kernel before 5.3 or without sock_diag, a process of a namespace
// that can't be seen from here) nothing is proven, which is an error and does no
// harm.
package proof

import "errors"

// ErrNone means that this system can prove nothing about the process.
var ErrNone = errors.New("prove that a process has ended: this system has no means for it")
