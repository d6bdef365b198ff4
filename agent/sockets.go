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
)

var socketModes = []string{"0600", "0660", "0666"}

// place is where the agent listens for programs of its host, by the setting that names it.
type place struct{ flag, path, mode, group string }

// places are the agent's socket and, if there is one, that which only answers questions.
func (c Config) places() []place {
	all := []place{{"socket", c.Socket, c.SocketMode, c.SocketGroup}}
	if c.ReadSocket != "" {
		all = append(all, place{"read-socket", c.ReadSocket, c.ReadSocketMode, c.ReadSocketGroup})
	}
	return all
}

// sharing looks up who may connect.
func (p place) sharing() (serve.Sharing, *ConfigError) {
	mode, _ := strconv.ParseUint(p.mode, 8, 9) // one of socketModes
	to := serve.Sharing{Mode: fs.FileMode(mode), Group: -1}
	if p.group == "" {
		return to, nil
	}
	gid, err := access.Group(p.flag+"-group", p.group)
	if bad, ok := errors.AsType[*access.Error](err); ok {
		return to, &ConfigError{Flag: bad.Key, Problem: bad.Problem, Hint: bad.Hint}
	}
	to.Group = int(gid)
	return to, nil
}

// checkSockets looks up the groups. It refuses two sockets in one directory that not both groups
// can enter.
func checkSockets(c Config) *ConfigError {
	if c.ReadSocket == "" && c.ReadSocketGroup != "" {
		return configError("read-socket-group", "give --read-socket a path", "there is no --read-socket")
	}
	var groups []int
	all := c.places()
	for _, p := range all {
		to, bad := p.sharing()
		if bad != nil {
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
		return configError("read-socket", "put it into a directory of its own, such as /run/doyen-read",
			"%s is also the directory of --socket, and only one group can enter it", dir)
	}
	return nil
}

// checkSharing refuses groups that this user can't give the sockets to.
func checkSharing(c Config) *ConfigError {
	for _, p := range c.places() {
		if to, bad := p.sharing(); bad == nil {
			if bad, ok := errors.AsType[*ConfigError](startError(p.flag+"-group", to.Possible(p.path))); ok {
				return bad
			}
		}
	}
	return nil
}

// sockets are the listeners of the places, in their order.
type sockets []net.Listener

func (all sockets) Close() (err error) {
	for _, l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
}

// listenSockets listens at the places.
func (c Config) listenSockets() (all sockets, err error) {
	for _, p := range c.places() {
		to, bad := p.sharing()
		if bad != nil {
			return nil, errors.Join(bad, all.Close())
		}
		l, err := serve.Listen(p.path)
		if err != nil {
			return nil, errors.Join(startError(p.flag, err), all.Close())
		}
		all = append(all, l)
		if err := serve.Share(p.path, to); err != nil {
			return nil, errors.Join(startError(p.flag+"-group", err), all.Close())
		}
	}
	return all, nil
}

// answer has the server answer at the places.
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
	l, err := serve.Listen(next.ReadSocket)
	if err != nil {
		return startError("read-socket", err)
	}
	return l.Close()
}
