package membership

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

const (
	// maxMembers bounds how many live members memberlist lists.
	maxMembers = 1024
	maxSeeds   = 64
)

// Config is what stays the same while an agent's membership runs.
type Config struct {
	Cluster   string             // at most 63 bytes; agents of another cluster are refused
	Key       []byte             // the cluster key that encrypts, of KeySize bytes; nil: no encryption
	OtherKeys [][]byte           // keys that this agent accepts too, while the cluster's key is changed
	Signer    ed25519.PrivateKey // the agent's identity
	Bind      netip.Addr
	Port      int        // for UDP and TCP; 0: any free port
	Advertise netip.Addr // the address for the other agents; zero: Bind
	// Self is this agent. GossipAddr, Status and RTT are ignored. If PeerAddr
	// has only a port, it gets the advertised address.
	Self        Member
	Join        []string // seeds as HOST or HOST:PORT; IPv6 as ADDR or [ADDR]:PORT
	DefaultPort int      // for seeds without a port; 0: the port of this agent
	Pace        Pace     // empty: PaceLAN
	// PeerIDOf derives an agent's peer ID from its public key.
	PeerIDOf func(ed25519.PublicKey) (election.PeerID, error)
	// Judge returns an error with the reason if it refuses a member. One goroutine calls it,
	// for every member of every new view. It must be quick, and must depend on its argument
	// alone. Nil accepts all.
	Judge func(Member) error
	// Rightful reports whether a member owns its name; a voter does. The owner keeps the name even if another
	// live member had it first, and a view may show the owner before it has answered. Several goroutines call
	// Rightful. If Rightful is nil, nobody owns a name.
	Rightful func(Member) bool
	// Votes reports whether a member votes: a change of a voter is in a view at once, also in a large cluster.
	// Several goroutines call Votes, and it must not block. If it is nil, nobody votes.
	Votes func(Member) bool
	// Met reports whether this agent has a direct connection to a member. If a connection is missing for long,
	// this agent exchanges lists with the member. One goroutine calls Met. If Met is nil, none is missing.
	Met    func(election.PeerID) bool
	Logger *slog.Logger // nil: nothing is logged

	// wrap lets a test put its own layer between memberlist and the network.
	wrap func(memberlist.Transport) memberlist.Transport
	// tune lets a test shorten waits.
	tune func(*timing)
}

// Pace decides how soon a silent member counts as dead. It must fit the network's round trips.
type Pace string

const (
	PaceLocal Pace = "local" // one host
	PaceLAN   Pace = "lan"   // round trips of some milliseconds; a killed member is declared dead within two seconds
	PaceWAN   Pace = "wan"   // round trips of some hundred milliseconds; a killed member is declared dead within about ten seconds
)

// timing has the durations and factors of a Pace.
type timing struct {
	probeInterval, probeTimeout      time.Duration
	suspicionMult, suspicionMaxMult  int
	awareness                        int
	gossip, pushPull                 time.Duration
	introduce                        time.Duration // see loop.unmet
	forget                           time.Duration // after that time, memberlist forgets a dead node
	tcp                              time.Duration
	dial                             time.Duration // how long one attempt to join may take
	retry, retryMost, lost, lostMost time.Duration // waits between attempts, see joiner
}

func (p Pace) timing() (timing, error) {
	t := timing{
		probeInterval: 400 * time.Millisecond, probeTimeout: 200 * time.Millisecond,
		suspicionMult: 3, suspicionMaxMult: 2, awareness: 8,
		gossip: 200 * time.Millisecond, pushPull: 10 * time.Second, forget: 30 * time.Second,
		introduce: 5 * time.Second,
		tcp:       time.Second, dial: 450 * time.Millisecond,
		retry: 50 * time.Millisecond, retryMost: 3 * time.Second,
		lost: 500 * time.Millisecond, lostMost: 5 * time.Second,
	}
	switch p {
	case PaceLAN, "":
	case PaceLocal:
		t.gossip = 20 * time.Millisecond
	case PaceWAN:
		t.probeInterval, t.probeTimeout = time.Second, 500*time.Millisecond
		t.suspicionMult, t.suspicionMaxMult, t.awareness = 4, 3, 5
		t.gossip, t.pushPull = 200*time.Millisecond, 30*time.Second
		t.tcp, t.dial = 3*time.Second, 2*time.Second
		t.retry = 200 * time.Millisecond
	default:
		return timing{}, fmt.Errorf("validate membership config: unknown pace %q: use local, lan or wan", p)
	}
	return t, nil
}

// validate returns what is missing or out of range, in words that a user understands.
func (c Config) validate() error {
	return wrap.Error(cmp.Or(c.validateSelf(), c.validateNetwork()), "validate membership config")
}

func (c Config) validateSelf() error {
	switch {
	case c.Cluster == "" || len(c.Cluster) > 63:
		return fmt.Errorf("cluster name %q must have 1 to 63 bytes", c.Cluster)
	case len(c.Signer) != ed25519.PrivateKeySize:
		return errors.New("signer is not an ed25519 private key")
	case c.PeerIDOf == nil:
		return errors.New("PeerIDOf is missing")
	}
	id, err := c.PeerIDOf(publicKey(c.Signer))
	if err != nil {
		return fmt.Errorf("derive peer ID: %w", err)
	}
	if id != c.Self.Peer {
		return fmt.Errorf("self is %q, but the signer's peer ID is %q", c.Self.Peer, id)
	}
	return nil
}

func (c Config) validateNetwork() error {
	switch {
	case len(c.Key) > 0 && CheckKey(c.Key) != nil:
		return CheckKey(c.Key)
	case len(c.OtherKeys) > 0 && len(c.Key) == 0:
		return errors.New("there are other cluster keys, but no key to use")
	case !c.Bind.IsValid():
		return errors.New("no address to bind")
	case c.Bind.Zone() != "" || c.Advertise.Zone() != "":
		return fmt.Errorf("address %s has a zone, which other hosts can't use", c.Bind)
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("port %d is out of range", c.Port)
	case c.DefaultPort < 0 || c.DefaultPort > 65535:
		return fmt.Errorf("default port %d is out of range", c.DefaultPort)
	case c.advertised().IsUnspecified() || c.advertised().IsMulticast():
		return fmt.Errorf("other hosts can't reach the advertised address %s", c.advertised())
	}
	return nil
}

// seed is an address at which the cluster may be found.
type seed struct {
	host string // a name or an IP address
	port uint16
}

func (s seed) String() string { return net.JoinHostPort(s.host, strconv.Itoa(int(s.port))) }

// parseSeed accepts HOST, HOST:PORT, an IPv6 address with or without brackets, and
// [IPv6]:PORT.
func parseSeed(s string, defaultPort uint16) (seed, error) {
	bare := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		bare = s[1 : len(s)-1]
	}
	if addr, err := netip.ParseAddr(bare); err == nil {
		return seed{host: addr.String(), port: defaultPort}, nil
	}
	host, port := s, strconv.Itoa(int(defaultPort))
	if strings.Contains(s, ":") {
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return seed{}, fmt.Errorf("parse join address %q: %w", s, err)
		}
	}
	if host == "" || strings.ContainsAny(host, " /[]") {
		return seed{}, fmt.Errorf("parse join address %q: write HOST or HOST:PORT", s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return seed{}, fmt.Errorf("parse join address %q: port %q is not between 1 and 65535", s, port)
	}
	return seed{host: host, port: uint16(n)}, nil
}

// SetSeeds replaces the seeds of Config.Join. An error means that nothing was changed.
func (m *Membership) SetSeeds(join []string) error {
	seeds, err := m.seeds(join)
	if err != nil {
		return err
	}
	select {
	case m.reseed <- seeds:
	case <-m.ctx.Done():
	}
	return nil
}

func (m *Membership) seeds(join []string) ([]seed, error) {
	port := cmp.Or(uint16(m.cfg.DefaultPort), m.wire.advertise.Port())
	if len(join) > maxSeeds {
		return nil, fmt.Errorf("%d addresses to join, at most %d are allowed", len(join), maxSeeds)
	}
	var seeds []seed
	for _, s := range join {
		parsed, err := parseSeed(s, port)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, parsed)
	}
	return seeds, nil
}

// plant replaces the seeds. A seed that was there before keeps its schedule.
func (j *joiner) plant(seeds []seed, now time.Time) {
	want := map[string]bool{}
	for _, s := range seeds {
		key := "seed " + s.String()
		want[key] = true
		if j.targets[key] == nil {
			j.targets[key] = &target{seed: s, next: now}
		}
	}
	maps.DeleteFunc(j.targets, func(key string, t *target) bool { return t.lostAt.IsZero() && !want[key] })
}

// advertised is this agent's address as the other agents get it.
func (c Config) advertised() netip.Addr {
	if c.Advertise.IsValid() {
		return c.Advertise.Unmap()
	}
	return c.Bind.Unmap()
}

// hostAddrs returns the addresses of this host's interfaces, or none if the system does not report them.
func hostAddrs() []netip.Addr {
	found, _ := net.InterfaceAddrs()
	var addrs []netip.Addr
	for _, a := range found {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			addrs = append(addrs, p.Addr().Unmap())
		}
	}
	return addrs
}

// publicKey returns the public half of an ed25519 private key.
func publicKey(k ed25519.PrivateKey) ed25519.PublicKey {
	return bytes.Clone(k[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
}
