// Package proof finds out from the kernel that the process at the other end of a Unix
// socket has ended.
//
// It guarantees that a process which it calls gone has ended with all its threads: none of its
// instructions runs after that. The process is the one that made the connection, whatever number it
// has and whatever program it runs by now. It also guarantees that no process holds the other end
// of a connection which it calls alone. It is not enough that the other end was shut down.
//
// It proves nothing about others: not about children of that process, nor about processes to
// which it passed the connection, nor about what it had sent or begun to write before it
// ended. Some systems do not report this: those other than Linux, a kernel before 5.3 or
// without sock_diag, or one that can't show a process of another namespace. There nothing is
// proven, which is an error and does no harm.
package proof

import "errors"

// ErrNone means that this system can prove nothing about the process.
var ErrNone = errors.New("prove that a process has ended: this system has no means for it")
