// Package sockdiag asks the kernel whether any process still holds a Unix socket
// (sock_diag, see sock_diag(7)). That needs no privilege.
//
// It guarantees that if it calls a socket unheld, no process holds it or ever will again:
// no descriptor of the socket is left anywhere, and none is on its way in a message. A
// socket that was only shut down still counts as held.
//
// It does not report who holds a socket, nor anything about processes. It sees only
// the sockets of its network namespace. Where the kernel can't be asked (systems
// other than Linux, a kernel without unix_diag, a sandbox that forbids netlink
// sockets) every answer is an error.
package sockdiag

import "errors"

// ErrUnseen means that the kernel shows no such socket to this process. If the socket is
// this process's own end of a connection, the connection is of another network
// namespace.
var ErrUnseen = errors.New("ask sock_diag: there is no such socket in this network namespace")
