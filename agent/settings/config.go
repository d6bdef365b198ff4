// Package settings is the configuration of an agent: its settings, the checks of their values, and the
// addresses and keys that it names. An agent with a configuration that Validate accepts can run on this host
// as this user, as far as that can be seen before the start. The package knows nothing of the agent itself.
package settings

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-sockaddr"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/hook"
)

// Config is how one agent runs. Start from Default, change what differs, and pass the Config to Run, which
// resolves and validates it. All returns the settings, with the flag and the field of each.
type Config struct {
	Name    string // unique in the cluster; default: the host name
	Cluster string
	DataDir string // directory of the agent's identity and promises
	Socket  string // path of the Unix socket, at most 107 bytes
	// SocketMode is octal. SocketGroup is a name or a number; empty: the agent's group.
	SocketMode, SocketGroup string
	// ReadSocket is the path of a socket that only answers GET; empty: there is no such socket.
	ReadSocket, ReadSocketMode, ReadSocketGroup string
	// RecordDir is where the record for the next life is kept; empty: beside the socket.
	RecordDir string

	Bind       string // IP address or interface to listen on
	Advertise  string // IP address for the other agents; default: Bind, or, if Bind is unspecified, an address of its family
	GossipPort int    // 0: any free port
	PeerPort   int    // 0: any free port
	Join       []string
	KeyFile    string // the cluster key, see ReadKeys; required unless Bind is loopback

	Voters       []string // names of the voters in the first roster; the first one proposes it
	Quorum       bool
	Algorithm    string // bully or ring
	Priority     int    // 0..MaxPriority; with 0 this agent never leads
	Preempt      bool
	PreemptDelay time.Duration
	Candidate    bool // this host is a candidate in the election "default"
	ResetGenesis bool // drop a pending first roster; a committed one is never dropped

	Profile   string        // local, lan or wan: sets Heartbeat and Lease where they are 0
	Heartbeat time.Duration // below a third of Lease
	Lease     time.Duration
	// ProfileLease is set by Resolve if no lease was given, so that Lease is the profile's.
	ProfileLease bool

	OnChange  string       // hook, run by the shell
	Check     string       // health check, run by the shell: while it fails, this host is not a candidate in "default"
	HostCheck health.Check // while it fails, this host is not a candidate in any election
	// HookFailures is after how many failed runs in a row this host hands a leadership over; 0: never.
	HookFailures int
	// Act makes the keeper start doyen act where a hook or a check is configured.
	Act bool
	// ActUser is a user that may be a companion, besides root and the agent's user; empty: no other user.
	ActUser   string
	Elections map[string]ElectionConfig // settings of single elections, by name; EveryOther: of all elections that have no entry
	Access    access.Config             // who may do what over the socket
	HTTP      string                    // optional read-only TCP listener, HOST:PORT
	HTTPHosts []string                  // host names that requests to HTTP may use
	HTTPAPI   bool                      // HTTP also answers GET /v1/…
	// AgentCheck is an optional TCP listener for HAProxy's agent checks, HOST:PORT.
	AgentCheck string
	LogLevel   string // debug, info, warn or error
	LogFormat  string // text or json

	// Keeper makes the program start a keeper, which starts each next life (see package keeper).
	Keeper bool
}

// EveryOther means all elections that have no entry in Config.Elections.
const EveryOther = "*"

// ElectionConfig holds the settings of one election. They are in the configuration file and
// have no flags.
type ElectionConfig struct {
	OnChange string // hook; empty: the hook of EveryOther, or for the default election that of Config.OnChange
	Expected bool   // there is a warning while this election has no candidates
	Check    health.Check
}

const (
	// MaxPriority is the highest priority a candidate can have.
	MaxPriority       = election.MaxPriority
	DefaultGossipPort = 7946
	DefaultPeerPort   = 7947
)

// Error is a mistake that only an operator can repair. It ends a start, and the command exits with
// status 78.
type Error struct {
	Flag    string // without dashes; empty: no flag is to blame
	Problem string
	Hint    string // what to do; may be empty
	Cause   error  // the error behind Problem, if the caller may want to know its type; else nil
}

func (e *Error) Unwrap() error { return e.Cause }

func (e *Error) Error() string {
	s := e.Problem
	if strings.HasPrefix(e.Flag, "elections") || strings.HasPrefix(e.Flag, "access") {
		s = e.Flag + ": " + s // a key of the configuration file, not a flag
	} else if e.Flag != "" {
		s = "--" + e.Flag + ": " + s
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

func Errorf(flag, hint, format string, args ...any) *Error {
	return &Error{Flag: flag, Problem: fmt.Sprintf(format, args...), Hint: hint}
}

// Default returns the configuration of an agent that is given no settings. Once resolved, it
// describes a cluster of one agent on loopback.
func Default() Config {
	return Config{
		Cluster: "doyen", SocketMode: "0660", ReadSocketMode: "0660",
		Bind: "127.0.0.1", GossipPort: DefaultGossipPort, PeerPort: DefaultPeerPort,
		Quorum: true, Algorithm: "bully", Profile: "lan", Candidate: true,
		Priority: election.DefaultPriority, Preempt: true, PreemptDelay: 5 * time.Second,
		LogLevel: "info", LogFormat: "text", Keeper: runtime.GOOS == "linux", Act: true,
	}
}

// DefaultDataDir is where an agent of this user keeps its identity and promises: /var/lib/doyen for
// root, else a folder in the user's state directory.
func DefaultDataDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/doyen", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "doyen"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", Errorf("data-dir", "name a directory", "no default: %v", err)
	}
	return filepath.Join(home, ".local", "state", "doyen"), nil
}

// timing returns the heartbeat and the lease of a profile; 0: there is no such profile.
func timing(profile string) (heartbeat, lease time.Duration) {
	t := map[string][2]time.Duration{
		"local": {50 * time.Millisecond, 300 * time.Millisecond},
		"lan":   {200 * time.Millisecond, 1200 * time.Millisecond},
		"wan":   {time.Second, 6 * time.Second},
	}[profile]
	return t[0], t[1]
}

var resolving = []func(*Config) error{resolveName, resolvePaths, resolveTiming, resolveBind, resolveAdvertise}

// Resolve fills in what was not given: the host name, the paths, the profile's timing, the address to advertise and
// the ports of HTTP and AgentCheck. It keeps what was given, except that it makes paths absolute and replaces an
// interface's name by its address. Errors are of type *Error.
func (c Config) Resolve() (Config, error) {
	for _, step := range resolving {
		if err := step(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

func resolveName(c *Config) error {
	if c.Name != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return Errorf("name", "give the agent a name", "the host name can't be read: %v", err)
	}
	c.Name = strings.ToLower(host)
	if !election.ValidName(c.Name) {
		return Errorf("name", "give the agent a name", "the host name %q can't be used: %s", host, nameRule)
	}
	return nil
}

func resolvePaths(c *Config) error {
	if c.DataDir == "" {
		dir, err := DefaultDataDir()
		if err != nil {
			return err
		}
		c.DataDir = dir
	}
	c.Socket = cmp.Or(c.Socket, client.DefaultSocket())
	for _, p := range []struct {
		flag string
		path *string
	}{{"data-dir", &c.DataDir}, {"socket", &c.Socket}, {"read-socket", &c.ReadSocket}, {"record-dir", &c.RecordDir}, {"key-file", &c.KeyFile}} {
		if *p.path == "" {
			continue
		}
		abs, err := filepath.Abs(*p.path)
		if err != nil {
			return Errorf(p.flag, "give an absolute path", "%v", err)
		}
		*p.path = abs
	}
	return nil
}

// resolveTiming ignores a profile that does not exist: Validate refuses it.
func resolveTiming(c *Config) error {
	heartbeat, lease := timing(c.Profile)
	c.Heartbeat = cmp.Or(c.Heartbeat, heartbeat)
	if c.Lease == 0 {
		c.Lease, c.ProfileLease = lease, true
	}
	return nil
}

// resolveAdvertise ignores a Bind that is not an address: Validate refuses it.
func resolveAdvertise(c *Config) error {
	bind, err := ParseAddr(c.Bind)
	if c.Advertise != "" || err != nil {
		return nil
	}
	if !bind.IsUnspecified() {
		c.Advertise = c.Bind
		return nil
	}
	var failed error
	for _, find := range []func() (sockaddr.IfAddrs, error){sockaddr.GetDefaultInterfaces, sockaddr.GetAllInterfaces} {
		interfaces, err := find()
		if c.Advertise = addressLike(bind, interfaces); c.Advertise != "" {
			return nil
		}
		failed = err
	}
	why := "no interface has an address of that kind that other hosts can use"
	if failed != nil {
		why = failed.Error()
	}
	return late("advertise", "give the address at which the other agents reach this host",
		"no address found for the other agents to use: --bind is %s: %s", c.Bind, why)
}

// addressLike returns an address of bind's family, since an agent that listens on 0.0.0.0 can't be
// reached by IPv6. It prefers the first private address, then the first address that other networks
// can reach. It returns "" if there is neither.
func addressLike(bind netip.Addr, interfaces sockaddr.IfAddrs) string {
	first := ""
	for _, i := range interfaces {
		ip := sockaddr.ToIPAddr(i.SockAddr)
		if ip == nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		addr, ok := netip.AddrFromSlice(*(*ip).NetIP())
		addr = addr.Unmap()
		switch {
		case !ok || addr.Is4() != bind.Is4() || !addr.IsGlobalUnicast():
		case addr.IsPrivate():
			return addr.String()
		case first == "":
			first = addr.String()
		}
	}
	return first
}

// Policy returns who may do what over the socket, with all names looked up.
// Errors are of type *Error.
func (c Config) Policy() (*access.Policy, error) {
	p, err := access.Resolve(c.Access, access.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())})
	return p, StartError("", err)
}

// Step is how much longer a lease must become before a program is sent a line. Programs get a line at
// each renewal, or at every second one if this host leads many elections and the lease is long enough.
func (c Config) Step(many bool) time.Duration {
	if many && c.Lease >= 6*c.Heartbeat {
		return c.Heartbeat * 3 / 2
	}
	return c.Heartbeat / 2
}

// Hosts are the host names that requests to the TCP listener may use: the given ones, the agent's
// name and this host's name.
func (c Config) Hosts() []string {
	all := append([]string{c.Name}, c.HTTPHosts...)
	if own, err := os.Hostname(); err == nil {
		all = append(all, own)
	}
	return all
}

// Shared returns those settings of a resolved configuration that the roster may have too. Algorithm is
// zero if it is the default, and Lease if none was given.
func (c Config) Shared() (s election.Settings) {
	if c.Algorithm != Default().Algorithm {
		s.Algorithm = c.Algorithm
	}
	if !c.ProfileLease {
		s.Lease = c.Lease
	}
	return s
}

// Expected returns the elections that should always have a candidate, sorted.
func (c Config) Expected() (names []election.Name) {
	for name, e := range c.Elections {
		if e.Expected {
			names = append(names, election.Name(name))
		}
	}
	slices.Sort(names)
	return names
}

// WithoutSecrets formats a configuration for people, without the arguments of commands, which may
// be secret. The cluster key is not included, only its file's name.
func (c Config) WithoutSecrets() []byte {
	program := func(command *string) {
		if *command != "" {
			*command = cmp.Or(hook.Program(*command), ":") + " …" // the shell's ":" does nothing
		}
	}
	program(&c.OnChange)
	program(&c.Check)
	program(&c.HostCheck.Command)
	c.Elections = maps.Clone(c.Elections)
	for name, e := range c.Elections {
		program(&e.OnChange)
		program(&e.Check.Command)
		c.Elections[name] = e
	}
	var text bytes.Buffer
	if err := c.Fprint(&text, nil); err != nil {
		fmt.Fprintln(&text, "#", err)
	}
	return text.Bytes()
}

func electionSetting(name, setting string) string { return "elections." + name + "." + setting }
