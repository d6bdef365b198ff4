package agent

import (
	"errors"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Port is a port that an agent listens on.
type Port struct {
	Flag    string // the setting that names it
	Network string // tcp or udp
	Address string
	bind    string
	number  int
}

// Ports returns the ports of a resolved configuration.
func (c Config) Ports() []Port {
	bind, err := parseAddr(c.Bind)
	if err != nil {
		return nil
	}
	all := []Port{{Flag: "gossip-port", Network: "tcp", number: c.GossipPort}, {Flag: "gossip-port", Network: "udp", number: c.GossipPort}, {Flag: "peer-port", Network: "tcp", number: c.PeerPort}}
	for i := range all {
		all[i].bind, all[i].Address = c.Bind, net.JoinHostPort(bind.String(), strconv.Itoa(all[i].number))
	}
	for _, l := range []struct{ flag, address string }{{"http", c.HTTP}, {"agent-check", c.AgentCheck}} {
		if l.address != "" {
			all = append(all, Port{Flag: l.flag, Network: "tcp", Address: l.address})
		}
	}
	return all
}

// Try listens for a moment. Its error is a *ConfigError.
func (p Port) Try() error {
	err := tryPort(p.Network, p.Address)
	if err == nil {
		return nil
	}
	explained := httpError(p.Address, err)
	if p.bind != "" {
		explained = portError(p.Flag, p.bind, p.number, err)
	}
	bad, ok := errors.AsType[*ConfigError](explained)
	if !ok {
		bad = configError(p.Flag, "choose another address or port", "%v", err)
	}
	return &ConfigError{Flag: p.Flag, Problem: bad.Problem, Hint: bad.Hint, Cause: err}
}

// InUse reports whether a trial failed because somebody listens there.
func InUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// tryPort listens for a moment.
func tryPort(network, address string) error {
	if network == "udp" {
		l, err := net.ListenPacket(network, address)
		if err != nil {
			return err
		}
		return l.Close()
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	return l.Close()
}

// spareFiles is how many open files are reserved for everything but the socket API: state,
// lease pages, hooks, gossip and the streams to other agents. A vote must not fail because
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

// filesOf leaves a quarter to the streams between agents: a large cluster has many.
func filesOf(limit int) int { return max((limit-spareFiles)*3/4, 1) }
