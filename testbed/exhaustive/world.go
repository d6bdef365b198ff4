package exhaustive

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// size is the number of agents. All are voters, and all except the last are candidates.
const size = 3

// drift is the largest that the elector accepts, so that the margins it requires are visible
// among the few instants that are explored.
const drift = 0.1

// rates are how far a clock moves in ten units of true time: exactly ten, or at an edge of the
// drift.
var rates = struct{ slow, exact, fast election.Instant }{9, 10, 11}

// timing has as few heartbeats in a lease as the elector accepts, so that a lease ends after
// few steps.
var timing = struct{ Heartbeat, Lease time.Duration }{390 * time.Millisecond, 1200 * time.Millisecond}

// agent is one host with its clock, its disk and its program, and the process on it, if alive.
type agent struct {
	alive   bool
	boot    election.LineageID
	process *process // shared between worlds until it steps
	clock   election.Instant
	rate    election.Instant // how far the clock moves in ten units of true time
	paused  bool
	cut     bool
	slow    bool // the write under way may stay under way while time passes
	wake    election.Instant

	disk    *election.State   // never changed in place
	before  *election.State   // the content of the disk before the last write
	pending *election.Persist // the write under way

	row  election.Authority // what is on record; zero: nothing
	life uint64             // the number of the life in its lineage

	rounds uint64 // the number of the newest round that any of its processes has begun

	leading bool          // it has announced that it leads, and has not withdrawn that
	owed    election.Term // the term from which it withdrew, while no receipt has come; 0: none
	acts    []act         // programs of this host that act; past ones are removed
}

// act is a program that acts as the leader until its deadline on the host's clock, whether its
// agent is alive or not.
type act struct {
	holder election.Holder
	term   election.Term
	until  election.Instant
}

// flight is a message under way.
type flight struct {
	from, to int
	late     bool // it may stay under way while time passes
	message  election.Message
}

// world is one state. Worlds share data that does not change.
type world struct {
	agents  [size]agent
	network []flight
	spent   uint8 // how many misfortunes it has had
	swaps   uint8 // how many events came before their turn
	last    election.Term
	leader  election.Holder // of term last
	beyond  bool            // a term above the bound was asked for

	fault *Violation
	log   *[]string // what happens, if set
}

// Bounds limit the paths that are explored. doc.go lists the misfortunes, and what else may
// happen in any order.
type Bounds struct {
	Terms       int // the highest term that may be asked for
	Misfortunes int
	Lives       bool          // agents keep a record; the misfortunes are deaths, late messages and resignations
	Grain       time.Duration // true time passes by multiples of it, so that states recur; 0: as finely as can be
	Swaps       int           // how often something happens before its turn; AnyOrder: everything, in any order
}

// grain is by what true time passes: at least so much that every clock moves by whole units.
func (b Bounds) grain() election.Instant { return max(10, election.Instant(b.Grain)) }

// AnyOrder has everything that happens without a cause happen in any order.
const AnyOrder = -1

func (b Bounds) String() string {
	text := fmt.Sprintf("terms up to %d, at most %d misfortunes a path", b.Terms, b.Misfortunes)
	if b.Lives {
		text += ", lives"
	}
	if b.Swaps != AnyOrder {
		text += fmt.Sprintf(", at most %d events before their turn", b.Swaps)
	}
	return text
}

func peerOf(i int) election.PeerID { return election.PeerID(rune('a' + i)) }

func indexOf(id election.PeerID) int { return int(id[0] - 'a') }

// bootOf numbers lineages so that each number belongs to one agent.
func bootOf(agent, life int) election.LineageID { return election.LineageID(life*size + agent + 1) }

func agentOf(b election.LineageID) int { return int(b-1) % size }

func (w *world) holder(i int) election.Holder {
	return election.Holder{Peer: peerOf(i), Lineage: w.agents[i].boot}
}

// view is what gossip shows to every agent.
func (w *world) view() election.View {
	var v election.View
	for i := range w.agents {
		m := election.Member{Peer: peerOf(i), Lineage: w.agents[i].boot, Name: string(peerOf(i)), JoinedAt: int64(w.agents[i].boot)}
		v.Members = append(v.Members, m)
	}
	return v
}

func firstState(i int) *election.State {
	r := &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}}
	for j := range size {
		r.Voters = append(r.Voters, election.Voter{Name: string(peerOf(j)), Peer: peerOf(j)})
	}
	return &election.State{Peer: peerOf(i), Roster: r, Grants: map[election.Name]election.Grant{}}
}

// sweep removes past acts, and sorts the others.
func (a *agent) sweep() {
	a.acts = slices.DeleteFunc(slices.Clone(a.acts), func(x act) bool { return x.until <= a.clock })
	slices.SortFunc(a.acts, func(x, y act) int { return cmp.Compare(x.holder.Lineage, y.holder.Lineage) })
}
