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
	CauseMessage    Cause = "message"     // the other agent has the key, but sends what this release does not know
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

// refusalFor says whose message did not pass the guard, and what to do about it. Strangers that
// talk to open ports are not reported.
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
	found      []Refusal // by the newest view
	hints      map[hintKey]*hint
	noise      int64 // datagrams of unknown senders, counted as long as they come
	noiseUntil time.Time
}

type hintKey struct {
	cause Cause
	name  string
	host  netip.Addr
}

// hint is a refusal outside memberlist's list: a message that did not pass the guard, a failed
// join, an advertisement that was not let in.
type hint struct {
	Refusal
	until  time.Time
	wanted bool // it is about an agent that this one tries to reach
}

func newLedger() *ledger { return &ledger{hints: map[hintKey]*hint{}} }

// settle takes what the newest view refuses, and forgets the hints that have expired.
func (l *ledger) settle(now time.Time, found []Refusal) {
	l.found = found[:min(len(found), maxRefusals)]
	maps.DeleteFunc(l.hints, func(_ hintKey, h *hint) bool { return now.After(h.until) })
}

// arrive forgets the hints about a host whose agent has become a member: it was repaired. If
// another agent of that host is refused, its next message brings the hint back.
func (l *ledger) arrive(host netip.Addr) {
	maps.DeleteFunc(l.hints, func(k hintKey, _ *hint) bool { return k.host == host })
}

// note records a hint. Hints that differ only in the port are one: each message of a host with
// another key or cluster may have a new port. A hint about an agent that is wanted takes the place
// of a stranger's.
func (l *ledger) note(now time.Time, r Refusal, wanted bool) {
	k := hintKey{r.Cause, r.Name, r.Addr.Addr()}
	h := l.hints[k]
	if h == nil {
		if len(l.hints) >= maxHints && (!wanted || !l.yield()) {
			return // the hint will come again when there is room
		}
		h = &hint{Refusal: r} // this text stays: the same cause has several symptoms
		l.hints[k] = h
	}
	h.until, h.wanted = now.Add(hintFor), h.wanted || wanted
}

// yield forgets the hint about a stranger that expires first, and reports whether there was one.
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
	l.hints[hintKey{cause: CauseNoise}] = &hint{until: l.noiseUntil, wanted: true, Refusal: Refusal{Cause: CauseNoise, Err: fmt.Errorf(
		"the gossip port received at least %d datagrams that no agent of this cluster sent: they may come from anywhere; close the port to other hosts", many)}}
}

// list returns what is refused now, sorted.
func (l *ledger) list() []Refusal {
	var all []Refusal
	all = append(all, l.found...)
	for _, h := range l.hints {
		all = append(all, h.Refusal)
	}
	slices.SortFunc(all, func(a, b Refusal) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Cause, b.Cause))
	})
	return all
}
