package membership

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Settings are what all agents of a cluster must agree on.
type Settings struct {
	Algorithm string // at most 32 bytes
	Quorum    bool
	Heartbeat time.Duration
	Lease     time.Duration
	Follows   bool // the member takes algorithm and lease from its roster, not from these fields
}

// Status is how gossip sees a member.
type Status string

const (
	Alive Status = "alive"
	Dead  Status = "dead" // it did not answer, and did not show in time that it is alive
	// Left is a member that left, or that was shut out: it has not answered since a cluster key was
	// removed, so nothing shows that it has one of the present keys.
	Left Status = "left"
)

// Member is an agent as gossip sees it. An agent gossips all fields about itself, under its signature,
// except GossipAddr, Status and RTT.
type Member struct {
	election.Member
	Version    string         // the version of the agent's program, at most 32 bytes
	GossipAddr netip.AddrPort // as memberlist advertises it
	PeerAddr   netip.AddrPort // where the agent's transport listens
	PageAddr   netip.AddrPort // where the agent's status page is, if other hosts can reach it
	Settings   Settings
	Status     Status
	RTT        time.Duration // of the last answered probe; 0: none was answered
}

// View is an immutable snapshot of the cluster as this agent sees it. A receiver must not change
// its slices, or anything else that it refers to.
type View struct {
	// Members are the live members, this agent included, sorted by peer ID. Each peer has one entry.
	Members []Member
	// Departed are the members that died or left most recently, sorted by peer ID. There are at most 64,
	// and each is forgotten after a day. None of them is also in Members.
	Departed []Member
	// Refused are the refusals in force, sorted by host, name and cause.
	Refused []Refusal
}

// Cause is why something was refused: a word that does not change in later versions.
type Cause string

const (
	CauseClusterKey Cause = "cluster_key" // the two agents have different keys, or one of them has none
	CauseCluster    Cause = "cluster"     // the other agent belongs to another cluster
	CauseNoAgent    Cause = "no_agent"    // what answers at a seed is not an agent of this cluster
	CauseSeed       Cause = "seed"        // an address to join does not answer, and no other agent was found
	CauseMessage    Cause = "message"     // the other agent has the key, but sends a message that this release does not know
	CauseNoise      Cause = "noise"       // datagrams that no agent of this cluster made, from anywhere
	CauseSignature  Cause = "signature"   // a member's advertisement is damaged or forged
	CauseJudge      Cause = "settings"    // Config.Judge refused the member
	CauseName       Cause = "name"        // two agents have one name
	CauseIdentity   Cause = "identity"    // two running agents have one identity
)

// Refusal is an agent that was not let in or, with Self, a reason why the other agents
// refuse this one.
type Refusal struct {
	Cause Cause
	Name  string         // the agent's name; empty: unknown
	Addr  netip.AddrPort // gossip address; port 0: only the host is known
	Err   error          // what happened, why, and what to do
	Self  bool           // the others refuse this agent
}

const (
	maxRefusals = 256 // how many refusals a view shows
	maxHints    = 64
	// fewNoise is how many datagrams of unknown senders must come before the agent reports them.
	fewNoise = 10
	// hintFor is how long a refusal that comes from hints is shown after the last hint.
	hintFor = 2 * time.Minute
)

// refusalFor makes a refusal from a message that did not pass the guard. Its text names the sender, and what
// to do. It returns false for faults that are not reported: strangers connect to any open port.
func refusalFor(f *fault, at netip.AddrPort, cluster string) (Refusal, bool) {
	const remedy = "give all agents the same cluster key"
	host := at.Addr()
	r := Refusal{Cause: CauseClusterKey, Addr: at}
	switch f.kind {
	case faultKey:
		r.Err = fmt.Errorf("the cluster key differs from that of the agent at %s: %s", host, remedy)
	case faultNoKey:
		r.Err = fmt.Errorf("the agent at %s has no cluster key, but this one has: %s", host, remedy)
	case faultNeedless:
		r.Err = fmt.Errorf("the agent at %s has a cluster key, but this one has none: %s", host, remedy)
	case faultCluster:
		r.Cause, r.Err = CauseCluster, fmt.Errorf(
			"the agent at %s belongs to cluster %.63q, this one to %q: give both the same cluster name, or remove it from the addresses to join",
			host, f.text, cluster)
	case faultMessage:
		r.Cause, r.Err = CauseMessage, fmt.Errorf(
			"the agent at %s has the cluster key, but sends what this release does not know: %s; run the same release on all agents", host, f.text)
	default:
		return r, false
	}
	return r, true
}

// ledger keeps what is refused now. It belongs to the loop.
type ledger struct {
	found      []Refusal // what the newest view refuses
	hints      map[hintKey]*hint
	noise      int64 // datagrams of unknown senders, counted until none comes for hintFor
	noiseUntil time.Time
}

type hintKey struct {
	cause Cause
	name  string
	host  netip.Addr
}

// hint is a refusal that does not come from memberlist's list: a message that did not pass the guard, a
// failed join, or an advertisement that was not accepted.
type hint struct {
	Refusal
	until  time.Time
	wanted bool // the hint is about the address of a member, a seed or a lost member
}

func newLedger() *ledger { return &ledger{hints: map[hintKey]*hint{}} }

// settle stores what the newest view refuses, and forgets the hints that have expired.
func (l *ledger) settle(now time.Time, found []Refusal) {
	l.found = found[:min(len(found), maxRefusals)]
	maps.DeleteFunc(l.hints, func(_ hintKey, h *hint) bool { return now.After(h.until) })
}

// arrive forgets the hints about a host whose agent has become a member: its fault was repaired. If
// another agent of that host is refused, its next message brings a hint back.
func (l *ledger) arrive(host netip.Addr) {
	maps.DeleteFunc(l.hints, func(k hintKey, _ *hint) bool { return k.host == host })
}

// note records a hint. Hints that differ only in the port count as one: each message of a host with another
// key or cluster may have a new port. Once all places are taken, a hint about a known address (see hint.wanted)
// replaces a hint about a stranger.
func (l *ledger) note(now time.Time, r Refusal, wanted bool) {
	k := hintKey{r.Cause, r.Name, r.Addr.Addr()}
	h := l.hints[k]
	if h == nil {
		if len(l.hints) >= maxHints && (!wanted || !l.yield()) {
			return // the hint comes again later, when there may be room
		}
		h = &hint{Refusal: r} // its text stays: another symptom of the same cause only keeps the hint
		l.hints[k] = h
	}
	h.until, h.wanted = now.Add(hintFor), h.wanted || wanted
}

// yield forgets one hint about a stranger, the one that expires first. It reports whether there was one.
func (l *ledger) yield() bool {
	var first *hint
	var at hintKey
	for k, h := range l.hints {
		if !h.wanted && (first == nil || h.until.Before(first.until)) {
			first, at = h, k
		}
	}
	delete(l.hints, at)
	return first != nil
}

// hear counts n more datagrams from unknown senders. The hint names no address, since a sender can write
// any address on a datagram.
func (l *ledger) hear(now time.Time, n int64) {
	if n == 0 {
		return
	}
	if now.After(l.noiseUntil) {
		l.noise = 0
	}
	l.noise, l.noiseUntil = l.noise+n, now.Add(hintFor)
	if l.noise < fewNoise {
		return
	}
	many := int64(fewNoise)
	for many*10 <= l.noise {
		many *= 10 // only powers of ten, so that the text seldom changes
	}
	l.hints[hintKey{cause: CauseNoise}] = &hint{until: l.noiseUntil, wanted: true, Refusal: Refusal{Cause: CauseNoise, Err: fmt.Errorf(
		"the gossip port received at least %d datagrams that no agent of this cluster sent: they may come from anywhere; close the port to other hosts", many)}}
}

// list returns what is refused now, sorted.
func (l *ledger) list() []Refusal {
	all := append([]Refusal(nil), l.found...)
	for _, h := range l.hints {
		all = append(all, h.Refusal)
	}
	slices.SortFunc(all, func(a, b Refusal) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Cause, b.Cause))
	})
	return all
}
