package settings

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/hashicorp/go-sockaddr"
)

// The ports of --http and --agent-check where the setting has only an address.
const (
	DefaultHTTPPort       = 7980
	DefaultAgentCheckPort = 7981
)

// errLate marks an *Error that may go away by itself, because the network is not up yet.
var errLate = errors.New("the network is not up yet")

func late(flag, hint, format string, args ...any) *Error {
	bad := Errorf(flag, hint, format, args...)
	bad.Cause = errLate
	return bad
}

const (
	addressTick   = 200 * time.Millisecond
	addressNotice = time.Minute
)

// Await waits until this host has the addresses that a configuration, resolved or not, needs: at a boot the network
// may be up later than the agent. Once a minute it calls notice with the missing address. Any other mistake ends
// the wait, and the caller's own checks find that mistake.
func (c Config) Await(ctx context.Context, notice func(string)) {
	tick := time.NewTicker(addressTick)
	defer tick.Stop()
	told := time.Time{}
	for {
		missing := c.missingAddress()
		if missing == nil {
			return
		}
		if time.Since(told) >= addressNotice {
			told = time.Now()
			notice(missing.Problem + ": the agent waits for it")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// missingAddress returns an error if this host lacks an address now but may get it later; nil: none is missing.
func (c Config) missingAddress() *Error {
	resolved, err := c.Resolve()
	if err == nil {
		err = checkHere(resolved)
	}
	if bad, ok := errors.AsType[*Error](err); ok && errors.Is(bad, errLate) {
		return bad
	}
	return nil
}

// checkHere refuses addresses to listen on that this host does not have.
func checkHere(c Config) error {
	http, _, _ := net.SplitHostPort(c.HTTP)
	check, _, _ := net.SplitHostPort(c.AgentCheck)
	for _, at := range []struct{ flag, host string }{{"bind", c.Bind}, {"http", http}, {"agent-check", check}} {
		addr, err := ParseAddr(at.host)
		if err != nil || addr.IsMulticast() {
			continue // Validate refuses a wrong address; http and agent-check may also have a host name
		}
		l, err := net.ListenPacket("udp", netip.AddrPortFrom(addr, 0).String())
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			return late(at.flag, "use an address that `ip addr` lists", "%s is not an address of this host", at.host)
		}
		if err == nil {
			_ = l.Close()
		}
	}
	return nil
}

// interfaceName matches what the kernel accepts, except what looks like an address.
var interfaceName = regexp.MustCompile(`^[A-Za-z][^/:%\s]{0,14}$`)

// resolveBind replaces an interface's name in Bind by its address, and adds default ports to HTTP and AgentCheck.
func resolveBind(c *Config) error {
	for addr, port := range map[*string]int{&c.HTTP: DefaultHTTPPort, &c.AgentCheck: DefaultAgentCheckPort} {
		if _, err := netip.ParseAddr(*addr); err == nil {
			*addr = net.JoinHostPort(*addr, strconv.Itoa(port))
		}
	}
	if _, err := netip.ParseAddr(c.Bind); err == nil || !interfaceName.MatchString(c.Bind) || c.Bind == "localhost" {
		return nil // an address, or a mistake that Validate refuses
	}
	addresses, err := addressesOf(c.Bind)
	if err != nil {
		return late("bind", "give an address of this host, or an interface that `ip addr` lists", "%q is not an IP address to listen on, and this host has no such interface", c.Bind)
	}
	for _, unspecified := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		if found := addressLike(unspecified, addresses); found != "" {
			c.Bind = found
			return nil
		}
	}
	for _, a := range addresses {
		if ip := sockaddr.ToIPAddr(a.SockAddr); ip != nil && (*ip).NetIP().IsLoopback() {
			c.Bind = (*ip).NetIP().String()
			return nil
		}
	}
	return late("bind", "`ip addr` lists what it has", "the interface %s has no address that other hosts can use", c.Bind)
}

func addressesOf(name string) (sockaddr.IfAddrs, error) {
	if _, err := net.InterfaceByName(name); err != nil {
		return nil, err
	}
	all, err := sockaddr.GetAllInterfaces()
	return slices.DeleteFunc(all, func(a sockaddr.IfAddr) bool { return a.Name != name }), err
}
