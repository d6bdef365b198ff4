package client

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// impostorError refuses a socket at which another user answers than the owner of its directory.
type impostorError struct {
	dir      string
	uid, own uint32 // the user of the listening process, and the directory's owner
}

func (e *impostorError) Error() string {
	return fmt.Sprintf("user %d answers there, in the directory %s, which others besides its owner, user %d, may write to", e.uid, e.dir, e.own)
}

// trusted refuses, as root, a socket in a directory that others may write to, such as /tmp, unless
// root or the directory's owner listens there. Anybody else could have made the socket, and would
// be believed in place of an agent. Other users name the sockets of others at their own risk.
func trusted(c net.Conn, socket string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir := filepath.Dir(socket)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o022 == 0 {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	unix, isUnix := c.(*net.UnixConn)
	if !ok || !isUnix {
		return nil
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return err
	}
	var uid uint32
	var asked error
	if err := raw.Control(func(fd uintptr) { uid, asked = listener(int(fd)) }); err != nil {
		return err
	}
	switch {
	case asked != nil:
		return fmt.Errorf("ask who listens: %w", asked)
	case uid != 0 && uid != owner.Uid:
		return &impostorError{dir, uid, owner.Uid}
	}
	return nil
}
