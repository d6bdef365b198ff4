// Package socket makes the Unix sockets that programs of this host connect to, and asks the kernel
// who has connected.
//
// It guarantees that a new socket replaces only a socket on which nobody listens, and only in a directory
// of the agent's user or of root. An agent that runs as root may use any directory. It also bounds the
// connections of a listener, and those of each user or address (Places). Package access decides what a peer may do.
package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/internal/base/fd"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"golang.org/x/sys/unix"
)

// Error is why the agent can't listen on a socket, and what to do.
type Error struct {
	Path    string
	Problem string
	Hint    string
}

func (e *Error) Error() string { return e.Path + ": " + e.Problem + "; " + e.Hint }

const dialTimeout = time.Second

// Listen listens on a Unix socket that the agent's user and group may connect to. It replaces a socket
// on which no process listens. Anything else at the path stays, and is reported as an *Error.
func Listen(path string) (net.Listener, error) {
	if err := socketDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := clearSocket(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, &Error{path, "another process has just taken it", "start again"}
	}
	if err != nil {
		return nil, &Error{path, "can't be listened on: " + Cause(err), "choose another path with --socket"}
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(fmt.Errorf("protect socket: %w", err), l.Close())
	}
	return l, nil
}

// socketDir makes the directory, for the agent's user and group only. A directory that exists
// is used as it is: it may be /run itself.
func socketDir(dir string) error {
	err := makeDir(dir, 0o750)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return &Error{dir, "can't be created: " + Cause(err), "choose another path with --socket"}
	}
	return trusted(dir, os.Geteuid())
}

// makeDir makes a directory of that mode, whatever the umask is. It makes the missing directories above
// that one with mode 0755. The error is fs.ErrExist if the directory exists already.
func makeDir(dir string, mode fs.FileMode) error {
	err := os.Mkdir(dir, mode)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeDir(filepath.Dir(dir), 0o755); err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Mkdir(dir, mode)
		}
	}
	if err == nil {
		err = os.Chmod(dir, mode)
	}
	return err
}

// trusted refuses a directory of another user. Below /tmp, any user could make the directory first, and
// then replace this agent's socket. An agent that runs as root may use any directory.
func trusted(dir string, uid int) error {
	directory := false
	for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} { // of a link, both the link and its target are checked
		info, err := look(dir)
		if err != nil {
			return &Error{dir, "can't be used: " + Cause(err), "choose another path with --socket"}
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if ok && uid != 0 && owner.Uid != 0 && owner.Uid != uint32(uid) {
			return &Error{dir, "belongs to another user, " + access.UserName(owner.Uid) + ", who could answer in this agent's place",
				"choose another path with --socket, or set XDG_RUNTIME_DIR"}
		}
		directory = info.IsDir()
	}
	if !directory {
		return &Error{dir, "is not a directory", "choose another path with --socket"}
	}
	return nil
}

// clearSocket removes a socket that nobody listens on, and nothing else.
func clearSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &Error{path, "can't be examined: " + Cause(err), "choose another path with --socket"}
	}
	if info.Mode().Type() != fs.ModeSocket {
		return &Error{path, "exists and is not a socket; nothing was changed", "move it away or choose another path with --socket"}
	}
	conn, err := net.DialTimeout("unix", path, dialTimeout)
	if err == nil {
		owner := describe(conn)
		conn.Close()
		return &Error{path, "is in use by " + owner, "stop it or choose another path with --socket"}
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return &Error{path, "may be in use: " + Cause(err), "stop the process that listens there or choose another path with --socket"}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &Error{path, "is an old socket and can't be removed: " + Cause(err), "remove it"}
	}
	return nil
}

func describe(conn net.Conn) string {
	if p, err := PeerOf(conn); err == nil && p.PID > 0 {
		return fmt.Sprintf("another process (pid %d)", p.PID)
	}
	return "another process"
}

// Cause returns the system's error, without paths and addresses.
func Cause(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// Peer is who is at the other end of a Unix socket, as the kernel reports.
type Peer struct {
	access.Who
	PID int32 // 0: the system does not report it
}

// PeerOf asks the kernel who is at the other end.
func PeerOf(c net.Conn) (Peer, error) {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return Peer{}, errors.New("identify the process at the other end: not a Unix socket")
	}
	var p Peer
	err := fd.Use(unix, func(d int) (err error) {
		p, err = credentials(d)
		return err
	})
	return p, wrap.Error(err, "identify the process at the other end")
}
