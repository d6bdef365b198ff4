package proof

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/doyen-election/doyen/internal/base/fd"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// errUnseen means that the kernel does not show this socket to this process. If it is this
// process's own end of a connection, the connection belongs to another network namespace.
var errUnseen = errors.New("ask sock_diag: there is no such socket in this network namespace")

// ownInode returns the inode of this process's own end of a connection.
func ownInode(conn syscall.Conn) (uint32, error) {
	var stat unix.Stat_t
	if err := fd.Use(conn, func(d int) error { return unix.Fstat(d, &stat) }); err != nil {
		return 0, fmt.Errorf("find the socket's inode: %w", err)
	}
	return uint32(stat.Ino), nil // inodes of sockets have 32 bits
}

// peerInode asks sock_diag, see sock_diag(7), for the inode of the socket at the other end of a
// connection. This needs no privilege. The result is 0 if no process has that socket open: there is
// no descriptor of it anywhere, and none is on its way in a message. A socket that was only shut
// down still counts as open.
func peerInode(conn *net.UnixConn) (uint32, error) {
	own, err := ownInode(conn)
	if err != nil {
		return 0, err
	}
	attributes, err := ask(own, showPeer)
	if err != nil {
		return 0, err
	}
	for _, a := range attributes {
		if a.Attr.Type == attributePeer && len(a.Value) >= 4 {
			return binary.NativeEndian.Uint32(a.Value), nil
		}
	}
	return 0, errors.New("ask sock_diag: the socket has no peer")
}

// isHeld reports whether a process has the socket with that inode open. Ask only about an inode that
// was open when peerInode returned it: a socket of another network namespace looks as if nobody had it
// open. The answer may be about another socket with the same number: inodes are used again after 2^32
// sockets.
func isHeld(inode uint32) (bool, error) {
	if inode == 0 {
		return false, nil
	}
	_, err := ask(inode, 0)
	if errors.Is(err, errUnseen) {
		return false, nil
	}
	return err == nil, err
}

// From linux/unix_diag.h.
const (
	showPeer      = 0x4 // UDIAG_SHOW_PEER
	attributePeer = 2   // UNIX_DIAG_PEER
	answerSize    = 16  // the size of struct unix_diag_msg
)

// request is struct unix_diag_req. It names a socket by its inode, with any cookie.
type request struct{ inode, show uint32 }

func (q request) Len() int { return 24 }

func (q request) Serialize() []byte {
	b := make([]byte, q.Len())
	b[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(b[4:], ^uint32(0)) // any state
	binary.NativeEndian.PutUint32(b[8:], q.inode)
	binary.NativeEndian.PutUint32(b[12:], q.show)
	binary.NativeEndian.PutUint64(b[16:], ^uint64(0)) // any cookie
	return b
}

// ask asks the kernel about one socket.
func ask(inode, show uint32) ([]syscall.NetlinkRouteAttr, error) {
	req := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, 0)
	req.AddData(request{inode, show})
	answers, err := req.Execute(unix.NETLINK_SOCK_DIAG, nl.SOCK_DIAG_BY_FAMILY)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, errUnseen
	case err != nil:
		return nil, fmt.Errorf("ask sock_diag: %w", err)
	case len(answers) != 1 || len(answers[0]) < answerSize || binary.NativeEndian.Uint32(answers[0][4:]) != inode:
		return nil, errors.New("ask sock_diag: its answer is about another socket")
	}
	attributes, err := nl.ParseRouteAttr(answers[0][answerSize:])
	return attributes, wrap.Error(err, "ask sock_diag: read its answer")
}
