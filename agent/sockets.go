package agent

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/serve/socket"
)

var socketModes = []string{"0600", "0660", "0666"}

// Socket is a place where the agent listens for programs of its host.
type Socket struct {
	Flag, Path  string // the setting that names it
	mode, group string
}

// Sockets are the agent's socket and, if there is one, that which only answers questions.
func (c Config) Sockets() []Socket {
	all := []Socket{{"socket", c.Socket, c.SocketMode, c.SocketGroup}}
	if c.ReadSocket != "" {
		all = append(all, Socket{"read-socket", c.ReadSocket, c.ReadSocketMode, c.ReadSocketGroup})
	}
	return all
}

// Sharing looks up who may connect. Its error is a *ConfigError.
func (s Socket) Sharing() (socket.Sharing, error) {
	mode, _ := strconv.ParseUint(s.mode, 8, 9) // one of socketModes
	to := socket.Sharing{Mode: fs.FileMode(mode), Group: -1}
	if s.group == "" {
		return to, nil
	}
	gid, err := access.Group(s.Flag+"-group", s.group)
	if bad, ok := errors.AsType[*access.Error](err); ok {
		return to, &ConfigError{Flag: bad.Key, Problem: bad.Problem, Hint: bad.Hint}
	}
	to.Group = int(gid)
	return to, err
}

// checkSockets looks up the groups. It refuses two sockets in one directory that not both groups
// can enter.
func checkSockets(c Config) *ConfigError {
	if c.ReadSocket == "" && c.ReadSocketGroup != "" {
		return configError("read-socket-group", "give --read-socket a path", "there is no --read-socket")
	}
	var groups []int
	all := c.Sockets()
	for _, s := range all {
		to, err := s.Sharing()
		if bad, ok := errors.AsType[*ConfigError](err); ok {
			return bad
		}
		groups = append(groups, to.Group)
	}
	if len(all) == 1 {
		return nil
	}
	if c.Socket == c.ReadSocket {
		return configError("read-socket", "give each its own path", "%s is also the path of --socket", c.ReadSocket)
	}
	dir := filepath.Dir(c.Socket)
	if info, err := os.Stat(dir); dir == filepath.Dir(c.ReadSocket) && groups[0] != groups[1] && (err != nil || info.Mode().Perm()&0o001 == 0) {
		return configError("read-socket", "put it into another directory, such as /run/doyen-read",
			"%s is also the directory of --socket, and only one group can enter it", dir)
	}
	return nil
}

// checkSharing refuses groups that this user can't give the sockets to.
func checkSharing(c Config) *ConfigError {
	for _, s := range c.Sockets() {
		to, err := s.Sharing()
		if err == nil {
			err = startError(s.Flag+"-group", to.Possible(s.Path))
		}
		if bad, ok := errors.AsType[*ConfigError](err); ok {
			return bad
		}
	}
	return nil
}

// sockets are the listeners of Sockets, in their order.
type sockets []net.Listener

func (all sockets) Close() (err error) {
	for _, l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
}

// listenSockets listens at all of Sockets.
func (c Config) listenSockets() (all sockets, err error) {
	for _, s := range c.Sockets() {
		to, err := s.Sharing()
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		l, err := socket.Listen(s.Path)
		if err != nil {
			return nil, errors.Join(startError(s.Flag, err), all.Close())
		}
		all = append(all, l)
		if err := socket.Share(s.Path, to); err != nil {
			return nil, errors.Join(startError(s.Flag+"-group", err), all.Close())
		}
	}
	return all, nil
}

// answer has the server answer.
func (all sockets) answer(s *serve.Server, c Config) {
	s.Socket(all[0])
	if len(all) > 1 {
		s.ReadSocket(all[1], c.Socket)
	}
}

// tryReadSocket listens for a moment where the next life wants to, if this one does not.
func (a *agent) tryReadSocket(next Config) error {
	if next.ReadSocket == "" || next.ReadSocket == a.cfg.ReadSocket {
		return nil
	}
	l, err := socket.Listen(next.ReadSocket)
	if err != nil {
		return startError("read-socket", err)
	}
	return l.Close()
}
