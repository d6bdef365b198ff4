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
	Follows   bool // algorithm and lease are not in use: the member's roster names others
}

// Status is how gossip sees a member.
type Status string

const (
	Alive Status = "alive"
	Dead  Status = "dead" // it did not answer, and did not show in time that it is alive
	// Left is a member that left, or that was shut out: it has not answered since a cluster
	// key was removed, so nothing shows that it has the new one.
	Left Status = "left"
)

// Member is an agent as gossip sees it. An agent gossips all of it about itself, under its
// signature, except for GossipAddr, Status and RTT.
type Member struct {
	election.Member
	Version    string         // of the agent's program, at most 32 bytes
	GossipAddr netip.AddrPort // as memberlist advertises it
	PeerAddr   netip.AddrPort // where its transport listens
	PageAddr   netip.AddrPort // where its status page is, if other hosts can reach it
	Settings   Settings
	Status     Status
	RTT        time.Duration // of the last answered probe; 0 when there was none
}

// View is an immutable snapshot of the cluster as this agent sees it. Receivers
// must not change what it points to.
type View struct {
	// Members are the live members, sorted by peer ID. Each peer has one
	// entry, this agent included.
	Members []Member
	// Departed are the members that last died or left, sorted by peer ID: at most 64,
	// each forgotten after a day. None of them is also in Members.
	Departed []Member
	// Refused are the refusals in force, sorted by host, name and cause.
	Refused []Refusal
}

// Election returns the view as the elector takes it.
func (v View) Election() election.View {
	members := make([]election.Member, len(v.Members))
	for i, m := range v.Members {
		members[i] = m.Member
	}
	return election.View{Members: members}
}

// Cause is why something was refused, as a stable word.
type Cause string

const (
	CauseClusterKey Cause = "cluster_key" // the other agent's key differs, or one has none
	CauseCluster    Cause = "cluster"     // the other agent belongs to another cluster
	CauseNoAgent    Cause = "no_agent"    // what answers at a seed is not an agent of this cluster
	CauseSeed       Cause = "seed"        // an address to join does not answer, and nobody else was found
	CauseMessage    Cause = "message"     // the other agent has the key, but this release does not send what it sends
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
	Name  string         // of the agent; empty when it is not known
	Addr  netip.AddrPort // gossip address; port 0 when only the host is known
	Err   error          // what, why and what to do
	Self  bool           // it is this agent that the others refuse
}

const (
	maxRefusals = 256 // that the views show
	maxHints    = 64
	// fewNoise is how many datagrams of unknown senders go unreported.
	fewNoise = 10
	// hintFor is how long a refusal that rests on hints is shown after the last hint.
	hintFor = 2 * time.Minute
)

// hint is a sign of a refusal outside memberlist's list: a message that did not
// pass the guard, a failed join, an advertisement that was not let in.
type hint struct {
	cause Cause
	name  string         // empty when only the host is known
	addr  netip.AddrPort // port 0 when only the host is known
	text  string
}

// faultHint says whose message did not pass the guard, and what to do about it. There is no
// hint about strangers that talk to open ports.
func faultHint(f *fault, host netip.Addr, cluster string) (hint, bool) {
	h := hint{addr: netip.AddrPortFrom(host, 0)}
	switch f.kind {
	case faultKey, faultNoKey, faultNeedless:
		h.cause, h.text = CauseClusterKey, keyText(f.Error(), host.String())
	case faultCluster:
		h.cause, h.text = CauseCluster, fmt.Sprintf(
			"the agent at %s belongs to cluster %.63q, this one to %q: give both the same cluster name, or remove it from the addresses to join",
			host, f.text, cluster)
	case faultMessage:
		h.cause, h.text = CauseMessage, fmt.Sprintf(
			"the agent at %s has the cluster key, but sends what this release does not know: %s; run the same release on all agents", host, f.text)
	default:
		return h, false
	}
	return h, true
}

// ledger keeps what is refused now. It belongs to the loop.
type ledger struct {
	current    map[refusalKey]*refused
	noise      int64 // datagrams of unknown senders, counted as long as they come
	noiseUntil time.Time
}

type refusalKey struct {
	cause Cause
	name  string
	addr  netip.AddrPort
}

type refused struct {
	refusal Refusal
	until   time.Time // zero: as long as the views show it
	wanted  bool      // a hint about an agent that this one tries to reach
}

func newLedger() *ledger { return &ledger{current: map[refusalKey]*refused{}} }

// settle takes what the newest view refuses. What only earlier views refused ends.
func (l *ledger) settle(now time.Time, found []Refusal) {
	current := map[refusalKey]bool{}
	for _, r := range found {
		k := refusalKey{r.Cause, r.Name, r.Addr}
		current[k] = true
		l.put(k, r, time.Time{})
	}
	maps.DeleteFunc(l.current, func(k refusalKey, s *refused) bool {
		return s.until.IsZero() && !current[k] || !s.until.IsZero() && now.After(s.until)
	})
}

// arrive forgets the hints about a host whose agent has become a member: it was repaired. If
// another agent of that host is refused, its next message brings the hint back.
func (l *ledger) arrive(host netip.Addr) {
	maps.DeleteFunc(l.current, func(k refusalKey, s *refused) bool { return !s.until.IsZero() && k.addr.Addr() == host })
}

// note records a hint. It drops the port: each message of a host with another key or cluster
// may have a new one. A hint about an agent that is wanted takes the place of a stranger's.
func (l *ledger) note(now time.Time, r Refusal, wanted bool) {
	k := refusalKey{r.Cause, r.Name, netip.AddrPortFrom(r.Addr.Addr(), 0)}
	if l.current[k] == nil && l.count(true) >= maxHints && (!wanted || !l.yield()) {
		return // the hint will come again when there is room
	}
	l.put(k, r, now.Add(hintFor))
	l.current[k].wanted = l.current[k].wanted || wanted
}

// yield forgets the hint about a stranger that ends first.
func (l *ledger) yield() bool {
	var first refusalKey
	for k, s := range l.current {
		if !s.until.IsZero() && !s.wanted && k.cause != CauseNoise && (l.current[first] == nil || s.until.Before(l.current[first].until)) {
			first = k
		}
	}
	found := l.current[first] != nil
	delete(l.current, first)
	return found
}

// hear takes how many datagrams from unknown senders came since its last call. It names no
// address: a sender can write any address on a datagram.
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
		many *= 10 // the text changes seldom
	}
	r := Refusal{Cause: CauseNoise, Err: fmt.Errorf(
		"the gossip port received at least %d datagrams that no agent of this cluster sent: they may come from anywhere; close the port to other hosts", many)}
	k := refusalKey{cause: CauseNoise}
	l.put(k, r, l.noiseUntil)
	l.current[k].refusal = r
}

// count returns how many hints there are or, if hints is false, refusals of the views.
func (l *ledger) count(hints bool) int {
	n := 0
	for _, s := range l.current {
		if hints == !s.until.IsZero() {
			n++
		}
	}
	return n
}

func (l *ledger) put(k refusalKey, r Refusal, until time.Time) {
	old, ok := l.current[k]
	switch {
	case !ok && until.IsZero() && l.count(false) >= maxRefusals:
		return // the refusal will come again when there is room
	case !ok:
		l.current[k] = &refused{refusal: r, until: until}
	default:
		old.until = until
		if !until.IsZero() {
			return // the first text stays: the same cause has several symptoms
		}
		old.refusal = r
	}
}

// list returns what is refused now, sorted.
func (l *ledger) list() []Refusal {
	var all []Refusal
	for _, s := range l.current {
		all = append(all, s.refusal)
	}
	slices.SortFunc(all, func(a, b Refusal) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Cause, b.Cause))
	})
	return all
}
