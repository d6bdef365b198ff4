// Package proof finds out from the kernel that the process at the other end of a Unix
// socket has ended.
//
// It guarantees that a process which it calls gone has ended with all its threads: it executes no
// further instruction. This process is the one that made the connection, even if it has executed another
// program since, or if another process has its number by now. If the package calls the process alone, no other
// process had the other end open when the process ended. A shutdown of that end is not enough.
//
// It proves nothing about other processes, such as children of that process or processes to which the
// connection was passed. Nor does it prove anything about what the process had sent or started to write. Some
// systems can't prove an end: those other than Linux, a kernel before 5.3 or without sock_diag, and one
// that can't show a process of another namespace. There a proof fails with an error, and nothing is
// wrongly called gone.
package proof

import "errors"

// ErrNone means that this system can't prove that the process has ended.
var ErrNone = errors.New("prove that a process has ended: this system has no means for it")
