package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/hook"
)

const (
	nameRule = "a name has 1 to 63 characters from a-z, 0-9, dot, dash and underscore, and starts with a letter or digit"
	// maxSocketPath is how many bytes a path may have in Linux's sockaddr_un, without its NUL.
	maxSocketPath = 107
	maxJoin       = 64
	maxElections  = 256 // how many elections may have their own settings
	maxHTTPHosts  = 64
	minHeartbeat  = 5 * time.Millisecond
)

var validating = []func(Config) error{
	checkNames, checkVoters, checkPaths, checkAddresses, checkJoin, checkKey, checkAlone, checkChoices, checkSockets, checkElection, checkTiming, checkOutputs, checkHooks, checkHealth, checkAccess, checkOwners,
}

// Validate returns the first mistake in a resolved configuration as a *Error. It reads the key
// file, and looks up the named users and groups. For root it also checks who could change the hooks
// and the agent's files.
func (c Config) Validate() error { return c.first(validating) }

// ValidateActing returns the first mistake in what doyen act uses. It does not read the key or the
// data directory, since doyen act's user may not be allowed to. It takes this process for doyen act, and
// ignores ActUser.
func (c Config) ValidateActing() error {
	c.Act = true
	return c.first([]func(Config) error{checkPaths, checkHooks, checkHealth})
}

func (c Config) first(checks []func(Config) error) error {
	for _, check := range checks {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

func checkNames(c Config) error {
	for _, n := range []struct{ flag, name string }{{"name", c.Name}, {"cluster", c.Cluster}} {
		if !election.ValidName(n.name) {
			return Errorf(n.flag, nameRule, "%q is not a valid name", n.name)
		}
	}
	return nil
}

func checkVoters(c Config) error {
	seen := map[string]bool{}
	for _, v := range c.Voters {
		switch {
		case !election.ValidName(v):
			return Errorf("voters", nameRule, "%q is not a valid name", v)
		case seen[v]:
			return Errorf("voters", "name each voter once", "%q is named twice", v)
		}
		seen[v] = true
	}
	if len(c.Voters) > election.MaxVoters {
		return Errorf("voters", "3, 5 or 7 are enough; other agents need not vote", "%d voters are given, at most %d are allowed", len(c.Voters), election.MaxVoters)
	}
	if len(c.Voters) > 0 && !seen[c.Name] && len(c.Join) == 0 {
		return Errorf("voters", "add it, or give the address of a voter with --join",
			"this agent's name %q is not among %s, and there is no --join", c.Name, strings.Join(c.Voters, ","))
	}
	return nil
}

func checkPaths(c Config) error {
	if c.DataDir == "" {
		return Errorf("data-dir", "name a directory", "is empty")
	}
	for _, s := range []struct{ flag, path string }{{"socket", c.Socket}, {"read-socket", c.ReadSocket}} {
		if len(s.path) > maxSocketPath {
			return Errorf(s.flag, "choose a shorter path", "the path has %d bytes, the system allows %d", len(s.path), maxSocketPath)
		}
		if s.path == "" && s.flag == "socket" || strings.ContainsRune(s.path, 0) {
			return Errorf(s.flag, "name a path", "%q is not a path", s.path)
		}
	}
	return nil
}

// ParseAddr parses an IP address without a zone.
func ParseAddr(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return addr, fmt.Errorf("%q is not an IP address", s)
	}
	if addr.Zone() != "" {
		return addr, fmt.Errorf("%q has a zone, which other hosts can't use", s)
	}
	return addr.Unmap(), nil
}

func checkAddresses(c Config) error {
	bind, err := ParseAddr(c.Bind)
	if err != nil || bind.IsMulticast() {
		return Errorf("bind", "give an address of this host, such as 0.0.0.0, or the name of an interface", "%q is not an IP address to listen on", c.Bind)
	}
	advertise, err := ParseAddr(c.Advertise)
	if err != nil || advertise.IsUnspecified() || advertise.IsMulticast() {
		return Errorf("advertise", "give the address at which the other agents reach this host", "%q is not an IP address of a host", c.Advertise)
	}
	if bind.Is4() != advertise.Is4() {
		return Errorf("advertise", "give an address of the same kind, or listen on another --bind (0.0.0.0 is all of IPv4, :: all of IPv6)",
			"nobody could reach %s: --bind is %s", c.Advertise, c.Bind)
	}
	for _, p := range []struct {
		flag string
		port int
	}{{"gossip-port", c.GossipPort}, {"peer-port", c.PeerPort}} {
		if p.port < 0 || p.port > 65535 {
			return Errorf(p.flag, "use 1 to 65535, or 0 for any free one", "%d is not a port", p.port)
		}
	}
	if c.GossipPort == c.PeerPort && c.GossipPort != 0 {
		return Errorf("peer-port", "both use TCP; choose another one", "%d is also the gossip port", c.PeerPort)
	}
	return nil
}

func checkJoin(c Config) error {
	if len(c.Join) > maxJoin {
		return Errorf("join", "a few are enough; gossip finds the others", "%d addresses are given, at most %d are allowed", len(c.Join), maxJoin)
	}
	for _, j := range c.Join {
		if err := checkHostPort(j); err != nil {
			return Errorf("join", "write HOST, HOST:PORT or [IPv6]:PORT", "%q: %v", j, err)
		}
	}
	return nil
}

// checkHostPort accepts HOST[:PORT]. HOST is a name or an IP address, and an IPv6 address with a
// port is in brackets.
func checkHostPort(s string) error {
	if _, err := netip.ParseAddr(s); err == nil {
		return nil
	}
	host, port := s, ""
	if strings.Contains(s, ":") {
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return fmt.Errorf("not a host and a port")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%q is not a port", port)
		}
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_')
	}
	if host == "" || len(host) > 253 || strings.ContainsFunc(host, odd) {
		return fmt.Errorf("%q is not a host", host)
	}
	return nil
}

func checkKey(c Config) error {
	if c.KeyFile != "" {
		if _, bad := ReadKeys(c.KeyFile); bad != nil {
			return bad
		}
		return nil
	}
	bind, _ := ParseAddr(c.Bind)
	if !bind.IsLoopback() {
		return Errorf("key-file", "name the cluster's key file, the same key on every host; only on the first host make one with `doyen keygen --out FILE`",
			"is required when --bind is not loopback (it is %s)", c.Bind)
	}
	return nil
}

// checkAlone refuses an agent that other hosts can reach, if it would form a cluster alone and --voters does not
// ask for that. If the host has lost its data directory, the agent would form a second cluster.
func checkAlone(c Config) error {
	bind, _ := ParseAddr(c.Bind)
	if c.Quorum && len(c.Voters) == 0 && len(c.Join) == 0 && !bind.IsLoopback() {
		return Errorf("voters", fmt.Sprintf("--voters %s starts a new cluster of this agent alone, --join HOST joins one", c.Name),
			"it, or --join, is required when --bind is not loopback (it is %s), so that no second cluster starts by mistake", c.Bind)
	}
	return nil
}

func checkElection(c Config) error {
	if c.Priority < 0 || c.Priority > MaxPriority {
		return Errorf("priority", "the highest leads; 0 never leads", "%d is not between 0 and %d", c.Priority, MaxPriority)
	}
	if c.PreemptDelay < 0 || c.PreemptDelay > 24*time.Hour {
		return Errorf("preempt-delay", "use 0s to 24h", "%s is out of range", c.PreemptDelay)
	}
	return nil
}

func checkTiming(c Config) error {
	switch {
	case c.Lease <= 0:
		return Errorf("lease", "see --profile for values that fit", "%s is not above 0", c.Lease)
	case c.Heartbeat < minHeartbeat:
		return Errorf("heartbeat", "see --profile for values that fit", "%s is below %s", c.Heartbeat, minHeartbeat)
	case c.Lease > election.MaxLease:
		return Errorf("lease", "see --profile for values that fit", "%s is above %s", c.Lease, election.MaxLease)
	case c.Heartbeat >= c.Lease/3:
		return Errorf("heartbeat", "two heartbeats may be lost before a lease ends: lower it or raise --lease",
			"%s must be below a third of the lease %s", c.Heartbeat, c.Lease)
	}
	return nil
}

// HTTPHint explains the form of the address in --http.
const HTTPHint = "write ADDR:PORT, such as 127.0.0.1:7980"

func checkOutputs(c Config) error {
	for _, l := range []struct{ flag, at, hint string }{{"http", c.HTTP, HTTPHint}, {"agent-check", c.AgentCheck, "write ADDR:PORT, such as 127.0.0.1:7981"}} {
		if l.at == "" {
			continue
		}
		_, port, err := net.SplitHostPort(l.at)
		if err != nil {
			return Errorf(l.flag, l.hint, "%q is not an address", l.at)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return Errorf(l.flag, l.hint, "%q is not a port", port)
		}
	}
	if len(c.HTTPHosts) > maxHTTPHosts {
		return Errorf("http-hosts", "name only those by which clients ask for it; IP addresses and localhost need no entry", "%d names are given, at most %d are allowed", len(c.HTTPHosts), maxHTTPHosts)
	}
	for _, h := range c.HTTPHosts {
		if err := checkHostPort(h); err != nil || strings.Contains(h, ":") {
			return Errorf("http-hosts", "write only the name, without a scheme, a port or a path", "%q is not the name of a host", h)
		}
	}
	return nil
}

// checkHooks checks the elections' names, hook-failures and act-user. For root, it refuses unsafe commands.
func checkHooks(c Config) error {
	if len(c.Elections) > maxElections {
		return Errorf("elections", "name only those that differ", "%d elections are given, at most %d are allowed", len(c.Elections), maxElections)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Elections)) {
		if !election.ValidName(name) && name != EveryOther {
			return Errorf("elections", nameRule, "%q is not a valid name", name)
		}
		if name == EveryOther && c.Elections[name].Expected {
			return Errorf(electionSetting(name, "expected"), "name each election that is expected", "%q is not one election", name)
		}
	}
	if c.HookFailures < 0 || c.HookFailures > health.MostFallOrRise {
		return Errorf("hook-failures", fmt.Sprintf("use 0 to %d", health.MostFallOrRise), "%d is out of range", c.HookFailures)
	}
	if _, err := c.ActUID(); err != nil {
		return Errorf("act-user", "name a user of this host, or its number", "%v", err)
	}
	for _, h := range c.hookLines() {
		if bad := runnable(h.flag, h.line); bad != nil && !c.actsApart() {
			return bad
		}
	}
	return nil
}

// runnable refuses, for root, a command that another user could change, or for which this can't
// be checked. The error is about the flag; nil: root may run the command.
func runnable(flag, command string) error {
	err := hook.CheckAsRoot(command)
	if err == nil {
		return nil
	}
	hint := "only root may be able to write to what root runs: change its owner or mode, or move it"
	if errors.Is(err, hook.ErrShellLine) {
		hint = "give the absolute path of a program with its arguments, for example of a script that holds this line, or have another user run it"
	}
	bad := Errorf(flag, hint, "%v", err)
	bad.Cause = err
	return bad
}

// hookLine is the command of a hook or a check, and the setting that names it.
type hookLine struct{ flag, line string }

func (c Config) hookLines() []hookLine {
	var all []hookLine
	for _, name := range slices.Sorted(maps.Keys(c.Elections)) {
		all = append(all, hookLine{electionSetting(name, "on-change"), c.Elections[name].OnChange},
			hookLine{electionSetting(name, "check"), c.Elections[name].Check.Command})
	}
	return append(all, hookLine{"on-change", c.OnChange}, hookLine{"check", cmp.Or(c.Check, c.HostCheck.Command)})
}

func checkHealth(c Config) error {
	if c.Check != "" && c.HostCheck.Command != "" {
		return Errorf("check", "put the command for \"default\" into the file, as `elections: {default: {check: {command: CMD}}}`", "one is given for \"default\", and the file has one for the whole host")
	}
	checks := map[string]health.Check{"check": c.HostCheck}
	for name, e := range c.Elections {
		checks[electionSetting(name, "check")] = e.Check
	}
	for _, flag := range slices.Sorted(maps.Keys(checks)) {
		k := checks[flag]
		bounds := func(d time.Duration) bool { return d >= health.Shortest && d <= health.Longest }
		r := k.Resolved()
		switch {
		case k == health.Check{}:
		case flag == electionSetting(EveryOther, "check"):
			return Errorf(flag, "write `check: {command: CMD}` at the top for all elections, or name one", "%q is not one election", EveryOther)
		case k.Command == "":
			return Errorf(flag, "write `{command: CMD}`", "the command is missing")
		case !bounds(r.Every) || !bounds(r.Timeout):
			return Errorf(flag, fmt.Sprintf("use %s to %s for every and timeout", health.Shortest, health.Longest), "every %s, timeout %s: out of range", r.Every, r.Timeout)
		case r.Fall < 1 || r.Rise < 1 || r.Fall > health.MostFallOrRise || r.Rise > health.MostFallOrRise:
			return Errorf(flag, fmt.Sprintf("use 1 to %d for fall and rise", health.MostFallOrRise), "fall %d, rise %d: out of range", r.Fall, r.Rise)
		}
	}
	return nil
}

// checkAccess looks up every user and group that is named.
func checkAccess(c Config) error {
	if len(c.Access.Elections) > maxElections {
		return Errorf("access.elections", `name only those that differ, and "*" for all others`, "%d elections are given, at most %d are allowed", len(c.Access.Elections), maxElections)
	}
	_, err := c.Policy()
	return err
}
