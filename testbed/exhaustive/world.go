package exhaustive

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// size is how many agents there are. All are voters; all but the last are
// candidates.
const size = 3

// drift is the widest the elector accepts, so that the margins it costs are
// visible among the few instants that are explored.
const drift = 0.1

// rates are how much a clock moves in ten units of true time: exact, or at an
// edge of the drift.
var rates = struct{ slow, exact, fast election.Instant }{9, 10, 11}

// timing has as few heartbeats in a lease as the elector accepts, so that a
// lease ends after few steps.
var timing = struct{ Heartbeat, Lease time.Duration }{390 * time.Millisecond, 1200 * time.Millisecond}

// agent is one host with its clock, its disk, its program, and its process, if
// that is alive.
type agent struct {
	alive   bool
	boot    election.LineageID
	process *process // shared between worlds until stepped
	clock   election.Instant
	rate    election.Instant // clock units in ten of true time
	paused  bool
	cut     bool
	slow    bool // the write under way may outlast the passing of time
	wake    election.Instant

	disk    *election.State   // never changed in place
	before  *election.State   // what was on the disk before the last write
	pending *election.Persist // the write under way

	row  election.Authority // on record; zero: nothing
	life uint64             // of the lineage

	leading bool          // announced, and not withdrawn
	owed    election.Term // withdrawn in this term, and no receipt given yet; 0: none
	acts    []act         // by programs of this host, past ones removed
}

// act is a program that acts as the leader until its deadline on the host's
// clock, whether its agent lives or not.
type act struct {
	holder election.Holder
	term   election.Term
	until  election.Instant
}

// flight is a message under way.
type flight struct {
	from, to int
	late     bool // it may outlast the passing of time
	message  election.Message
}

// world is one state. Worlds share what does not change.
type world struct {
	agents  [size]agent
	network []flight
	spent   uint8 // misfortunes
	last    election.Term
	leader  election.Holder // of term last
	beyond  bool            // a term above the bound was asked for

	fault *Violation
	log   *[]string // of what happens, if somebody wants to read it
}

// Bounds are what a path may hold. Whatever happens of itself may happen in any
// order; misfortunes are what doc.go calls so.
type Bounds struct {
	Terms       int // asked for
	Misfortunes int
	Lives       bool // agents keep a record; of the misfortunes there are deaths, late messages and resignations
}

func (b Bounds) String() string {
	text := fmt.Sprintf("terms up to %d, at most %d misfortunes a path", b.Terms, b.Misfortunes)
	if b.Lives {
		text += ", lives"
	}
	return text
}

func peerOf(i int) election.PeerID { return election.PeerID(rune('a' + i)) }

func indexOf(id election.PeerID) int { return int(id[0] - 'a') }

// bootOf numbers boots so that each belongs to one agent.
func bootOf(agent, life int) election.LineageID { return election.LineageID(life*size + agent + 1) }

func agentOf(b election.LineageID) int { return int(b-1) % size }

func (w *world) holder(i int) election.Holder {
	return election.Holder{Peer: peerOf(i), Lineage: w.agents[i].boot}
}

// view is what gossip tells everybody.
func (w *world) view() election.View {
	var v election.View
	for i := range w.agents {
		m := election.Member{Peer: peerOf(i), Lineage: w.agents[i].boot, Name: string(peerOf(i)), JoinedAt: int64(w.agents[i].boot)}
		if i < size-1 {
			m.Candidacies = []election.Candidacy{{Election: election.Default, Priority: election.DefaultPriority}}
		}
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
