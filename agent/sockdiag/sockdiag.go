// Package sockdiag asks the kernel which Unix sockets a process still holds
// (sock_diag, see sock_diag(7)). No privilege is needed for it.
//
// It guarantees that a socket which it calls unheld is held by no process and never
// will be again: no descriptor of it is left anywhere, and none is on its way in a
// message. A socket that was only shut down is not mistaken for that.
//
// It does not report who holds a socket, nor anything about processes. It sees only
// the sockets of its network namespace. Where the kernel can't be asked (systems
// other than Linux, a kernel without unix_diag, a sandbox that forbids netlink
// sockets) every answer is an error.
package sockdiag

import "errors"

// ErrUnseen means that the kernel shows no such socket to this process. For this
// process's end of a connection it means that the connection is of another network
// namespace.
var ErrUnseen = errors.New("ask sock_diag: there is no such socket in this network namespace")
