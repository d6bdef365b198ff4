// Package sockdiag asks the kernel which Unix sockets a process still holds
// (sock_diag, see sock_diag(7)). No privilege is needed for it.
//
// It guarantees that a socket it calls unheld is held by no process and never
// will be again: no descriptor of it is left anywhere, none is on its way in a
// message either. That a socket was shut down is no such thing, and is not
// mistaken for it.
//
// It does not tell who holds a socket, nor anything about processes. It sees
// the sockets of its own network namespace alone. Where the kernel can't be
// asked (other systems than Linux, a kernel without unix_diag, a sandbox that
// forbids netlink sockets) every answer is an error.
package sockdiag

import "errors"

// ErrUnseen says that the kernel shows no such socket to this process. Of the
// own end of a connection it means that the connection is of another network
// namespace.
var ErrUnseen = errors.New("ask sock_diag: there is no such socket in this network namespace")
