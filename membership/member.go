package membership

import (
	"net/netip"
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
