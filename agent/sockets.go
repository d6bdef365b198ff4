package agent

import (
	"errors"
	"net"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/agent/settings"
	"golang.org/x/sys/unix"
)

// sockets are the listeners for settings.Config.Sockets, in the same order.
type sockets []net.Listener

func (all sockets) Close() (err error) {
	for _, l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
}

func listenSockets(c settings.Config) (all sockets, err error) {
	for _, s := range c.Sockets() {
		to, err := s.Sharing()
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		l, err := socket.Listen(s.Path)
		if err != nil {
			return nil, errors.Join(settings.StartError(s.Flag, err), all.Close())
		}
		all = append(all, l)
		if err := socket.Share(s.Path, to); err != nil {
			return nil, errors.Join(settings.StartError(s.Flag+"-group", err), all.Close())
		}
	}
	return all, nil
}

func (all sockets) answer(s *serve.Server, c settings.Config) {
	s.Socket(all[0])
	if len(all) > 1 {
		s.ReadSocket(all[1], c.Socket)
	}
}

// tryReadSocket tries to listen on the next life's read-only socket, unless this life listens there.
func (a *agent) tryReadSocket(next settings.Config) error {
	if next.ReadSocket == "" || next.ReadSocket == a.cfg.ReadSocket {
		return nil
	}
	l, err := socket.Listen(next.ReadSocket)
	if err != nil {
		return settings.StartError("read-socket", err)
	}
	return l.Close()
}

// spareFiles is how many open files are reserved for everything but the socket API: state,
// lease pages, gossip and the streams to other agents. A vote must not fail because
// programs have used up all files.
const spareFiles = 256

// openFiles returns how many files the socket API may have open, 0 for any number. Go's
// runtime has already raised the limit to what the system allows.
func openFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > 1<<20 {
		return 0
	}
	return filesOf(int(limit.Cur))
}

// filesOf leaves a quarter of the other files to the streams between agents: a large cluster has many streams.
func filesOf(limit int) int { return max((limit-spareFiles)*3/4, 1) }
