package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/agent/store"
)

// Port is a port that an agent listens on.
type Port struct {
	Flag    string // the setting that names the port
	Network string // tcp or udp
	Address string
	bind    string
	Number  int
}

// Ports returns the ports of a resolved configuration.
func (c Config) Ports() []Port {
	bind, err := ParseAddr(c.Bind)
	if err != nil {
		return nil
	}
	all := []Port{{Flag: "gossip-port", Network: "tcp", Number: c.GossipPort}, {Flag: "gossip-port", Network: "udp", Number: c.GossipPort}, {Flag: "peer-port", Network: "tcp", Number: c.PeerPort}}
	for i := range all {
		all[i].bind, all[i].Address = c.Bind, net.JoinHostPort(bind.String(), strconv.Itoa(all[i].Number))
	}
	for _, l := range []struct{ flag, address string }{{"http", c.HTTP}, {"agent-check", c.AgentCheck}} {
		if l.address != "" {
			all = append(all, Port{Flag: l.flag, Network: "tcp", Address: l.address})
		}
	}
	return all
}

// Try listens on the port for a moment. Its error is a *Error.
func (p Port) Try() error {
	err := tryPort(p.Network, p.Address)
	if err == nil {
		return nil
	}
	explained := ListenError(p.Flag, p.Address, err)
	if p.bind != "" {
		explained = PortError(p.Flag, p.bind, p.Number, err)
	}
	bad, ok := errors.AsType[*Error](explained)
	if !ok {
		bad = Errorf(p.Flag, "choose another address or port", "%v", err)
	}
	return &Error{Flag: p.Flag, Problem: bad.Problem, Hint: bad.Hint, Cause: err}
}

// InUse reports whether Try failed because another process listens on the port.
func InUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

func tryPort(network, address string) error {
	var l io.Closer
	var err error
	if network == "udp" {
		l, err = net.ListenPacket(network, address)
	} else {
		l, err = net.Listen(network, address)
	}
	if err != nil {
		return err
	}
	return l.Close()
}

var socketModes = []string{"0600", "0660", "0666"}

// Socket is a Unix socket on which the agent listens for programs of its host.
type Socket struct {
	Flag, Path  string // the setting that names the socket, and its value
	mode, group string
}

// Sockets are the agent's socket and, if one is configured, the socket that only answers GET.
func (c Config) Sockets() []Socket {
	all := []Socket{{"socket", c.Socket, c.SocketMode, c.SocketGroup}}
	if c.ReadSocket != "" {
		all = append(all, Socket{"read-socket", c.ReadSocket, c.ReadSocketMode, c.ReadSocketGroup})
	}
	return all
}

// Sharing returns who may connect, with the group looked up. Its error is a *Error.
func (s Socket) Sharing() (socket.Sharing, error) {
	mode, _ := strconv.ParseUint(s.mode, 8, 9) // the mode is one of socketModes
	to := socket.Sharing{Mode: fs.FileMode(mode), Group: -1}
	if s.group == "" {
		return to, nil
	}
	gid, err := access.Group(s.Flag+"-group", s.group)
	to.Group = int(gid)
	return to, StartError("", err)
}

// checkSockets looks up the groups. It refuses two sockets in the same directory unless both groups
// can enter that directory.
func checkSockets(c Config) error {
	if c.ReadSocket == "" && c.ReadSocketGroup != "" {
		return Errorf("read-socket-group", "give --read-socket a path", "there is no --read-socket")
	}
	var groups []int
	all := c.Sockets()
	for _, s := range all {
		to, err := s.Sharing()
		if err != nil {
			return err
		}
		groups = append(groups, to.Group)
	}
	if len(all) == 1 {
		return nil
	}
	if c.Socket == c.ReadSocket {
		return Errorf("read-socket", "give each its own path", "%s is also the path of --socket", c.ReadSocket)
	}
	dir := filepath.Dir(c.Socket)
	if info, err := os.Stat(dir); dir == filepath.Dir(c.ReadSocket) && groups[0] != groups[1] && (err != nil || info.Mode().Perm()&0o001 == 0) {
		return Errorf("read-socket", "put it into another directory, such as /run/doyen-read",
			"%s is also the directory of --socket, and only one group can enter it", dir)
	}
	return nil
}

// checkSharing refuses groups to which this user can't give the sockets.
func checkSharing(c Config) error {
	for _, s := range c.Sockets() {
		to, err := s.Sharing()
		if err == nil {
			err = StartError(s.Flag+"-group", to.Possible(s.Path))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// StartError turns an error that an operator can repair into a *Error, and returns any other error unchanged.
func StartError(flag string, err error) error {
	if bad, ok := errors.AsType[*access.Error](err); ok {
		return &Error{Flag: bad.Key, Problem: bad.Problem, Hint: bad.Hint}
	}
	if bad, ok := errors.AsType[*store.Error](err); ok {
		return &Error{Flag: flag, Problem: bad.Path + " " + bad.Problem, Hint: bad.Hint}
	}
	if bad, ok := errors.AsType[*socket.Error](err); ok {
		return &Error{Flag: flag, Problem: bad.Path + " " + bad.Problem, Hint: bad.Hint}
	}
	return err
}

// PortError turns an error about a port into a *Error, if it knows a hint. It also compares texts, since the
// libraries do not always wrap the system's error.
func PortError(flag, bind string, port int, err error) error {
	at := fmt.Sprintf("%s port %d", bind, port)
	said := func(errno syscall.Errno) bool {
		return errors.Is(err, errno) || strings.Contains(err.Error(), errno.Error())
	}
	switch {
	case said(syscall.EADDRINUSE), strings.Contains(err.Error(), "port is in use"):
		return Errorf(flag, "stop the program that uses it (`ss -tulpn` shows which) or choose another one", "%s is in use", at)
	case said(syscall.EADDRNOTAVAIL):
		return Errorf("bind", "use an address that `ip addr` lists", "%s is not an address of this host", bind)
	case said(syscall.EACCES):
		return Errorf(flag, unprivileged, "%s may not be used by this agent", at)
	}
	return err
}

// unprivileged is the hint if the agent may not listen on a port.
const unprivileged = "use a port above 1023, or set `sysctl net.ipv4.ip_unprivileged_port_start`; under a keeper the agent has no capability, whatever its unit grants"

// ListenError turns an error about the address of a setting into a *Error.
func ListenError(flag, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return Errorf(flag, "choose another address", "%s is in use", address)
	case errors.Is(err, syscall.EACCES):
		return Errorf(flag, unprivileged, "%s may not be used by this agent", address)
	}
	return Errorf(flag, "choose another address", "%v", err)
}

// firstUnprivileged returns the lowest port that needs no capability; 0: all need none, or it is not known.
func firstUnprivileged() int {
	text, _ := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start") // only Linux has it
	first, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return first
}

// portsBelow returns warnings about ports below first: these need a capability, which the keeper takes from its
// agent.
func (c Config) portsBelow(first int) (all []string) {
	if !c.Keeper {
		return nil
	}
	for _, p := range c.Ports() {
		_, port, _ := net.SplitHostPort(p.Address)
		if n, err := strconv.Atoi(port); err == nil && n > 0 && n < first && p.Network == "tcp" {
			all = append(all, fmt.Sprintf("--%s: port %d is below %d: %s", p.Flag, n, first, unprivileged))
		}
	}
	return all
}
