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

// drift is the largest that the elector accepts. So the margins that it requires are large enough
// to matter at the few instants that are explored.
const drift = 0.1

// rates are how far a clock moves in ten units of true time: exactly ten, or at an edge of the
// drift.
var rates = struct{ slow, exact, fast election.Instant }{9, 10, 11}

// timing has the fewest heartbeats in a lease that the elector accepts, so that a lease ends
// after few steps.
var timing = election.Timing{Heartbeat: 390 * time.Millisecond, Lease: 1200 * time.Millisecond}

// agent is one host with its clock, its disk and its program, and the process on it, if alive.
type agent struct {
	alive   bool
	boot    election.LineageID
	process *process // worlds share it until it handles its next input
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

	leading bool          // it has announced that it leads, and has not taken that back
	owed    election.Term // the term from which it withdrew, while no receipt has come; 0: none
	acts    []act         // programs of this host that act; those whose deadline has passed are removed
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
	Swaps       int           // how many events may come before their turn; AnyOrder: any number
}

// grain is the step of true time: at least so long that every clock moves by whole units.
func (b Bounds) grain() election.Instant { return max(10, election.Instant(b.Grain)) }

// AnyOrder lets everything that happens without a cause happen in any order.
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
	r := &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}, Voters: votersNamed("abc")}
	return &election.State{Peer: peerOf(i), Roster: r, Grants: map[election.Name]election.Grant{}}
}

// sweep removes past acts, and sorts the others.
func (a *agent) sweep() {
	a.acts = slices.DeleteFunc(slices.Clone(a.acts), func(x act) bool { return x.until <= a.clock })
	slices.SortFunc(a.acts, func(x, y act) int { return cmp.Compare(x.holder.Lineage, y.holder.Lineage) })
}

// kind is what an action does.
type kind uint8

const (
	// What happens without a cause, in any order.
	deliver   kind = iota // a message arrives
	persisted             // a write succeeds
	wake                  // an agent that is due handles a Tick
	stopped               // a program that was asked to stop reports that it has
	pass                  // time passes until the next agent is due

	// Misfortunes. A path has a few of them.
	duplicate // a message arrives, and a copy stays under way
	lose      // a message is lost
	delay     // from now on a message may stay under way while time passes
	slow      // from now on a write may stay under way while time passes
	crash     // a process dies; the write under way is not on disk
	tornCrash // a process dies; the write under way is on disk
	pause     // a process stops for a while, and messages to it wait
	cut       // nothing that is sent to or from a host arrives any more
	sleep     // a lease passes in which no agent does anything
	resign    // the leader is asked to step down: counted as a misfortune, to be rare
	fatal     // a message arrives, and the process dies once it has put its decision on record

	// What ends misfortunes, at any time.
	restart // a crashed process starts again, as another holder
	revive  // the next life of a crashed process begins, with its record
	resume  // a paused process goes on
	heal    // a cut ends
)

func (k kind) misfortune() bool { return k >= duplicate && k <= fatal }

// action is one thing that can happen, to the message or the agent at index which.
type action struct {
	kind  kind
	which uint8
	swap  bool // it happens before its turn
}

// actions appends everything that can happen now.
func (w *world) actions(bounds Bounds, to []action) []action {
	unlucky := int(w.spent) < bounds.Misfortunes
	still := true // nothing is left that must happen before time passes
	for i, f := range w.network {
		if w.agents[f.to].paused {
			continue
		}
		which := uint8(i)
		to = append(to, action{kind: deliver, which: which})
		still = still && f.late
		switch {
		case !unlucky:
			continue
		case bounds.Lives:
			if f.ofAuthority() && !f.late {
				to = append(to, action{kind: fatal, which: which}, action{kind: delay, which: which})
			}
			continue
		}
		if !f.late {
			to = append(to, action{kind: lose, which: which})
		}
		if f.ofAuthority() {
			to = append(to, action{kind: duplicate, which: which})
			if !f.late {
				to = append(to, action{kind: delay, which: which})
			}
		}
	}
	for i := range w.agents {
		to = w.agents[i].actions(uint8(i), unlucky, bounds.Lives, to)
		still = still && !w.agents[i].busy()
	}
	if still && w.untilDue(bounds.grain()) > 0 {
		to = append(to, action{kind: pass})
	}
	if unlucky && !bounds.Lives {
		to = append(to, action{kind: sleep})
	}
	if bounds.Swaps != AnyOrder {
		to = w.inTurn(bounds, to)
	}
	return to
}

// inTurn marks the actions that would happen before their turn, and removes them once the path has used
// all its swaps. Late messages, misfortunes and what ends them have no turn.
func (w *world) inTurn(bounds Bounds, all []action) []action {
	taken, kept := false, all[:0]
	for _, x := range all {
		if x.kind <= pass && (x.kind != deliver || !w.network[x.which].late) {
			x.swap, taken = taken, true
		}
		if !x.swap || int(w.swaps) < bounds.Swaps {
			kept = append(kept, x)
		}
	}
	return kept
}

// busy reports whether the agent must do something before time passes.
func (a *agent) busy() bool {
	return a.alive && !a.paused && (a.pending != nil && !a.slow || a.clock >= a.wake)
}

func (a *agent) actions(which uint8, unlucky, lives bool, to []action) []action {
	add := func(when bool, k kind) {
		if when {
			to = append(to, action{kind: k, which: which})
		}
	}
	running := a.alive && !a.paused
	add(!a.alive, restart)
	add(!a.alive && a.row.Highest > 0 && lives, revive)
	add(a.alive && a.paused, resume)
	add(a.cut, heal)
	add(running && a.pending != nil, persisted)
	add(running && a.clock >= a.wake, wake)
	add(running && a.owed != 0, stopped)
	if unlucky {
		add(a.alive, crash)
		add(a.alive && a.pending != nil, tornCrash)
		add(running && a.leading, resign)
	}
	if unlucky && !lives {
		add(running && a.pending != nil && !a.slow, slow)
		add(running, pause)
		add(!a.cut, cut)
	}
	return to
}

// untilDue is the true time until the first running agent is due, rounded up to the grain; 0 if
// no agent is ever due.
func (w *world) untilDue(grain election.Instant) election.Instant {
	var first election.Instant
	for i := range w.agents {
		a := &w.agents[i]
		if !a.alive || a.paused || a.wake == election.Never || a.wake <= a.clock {
			continue
		}
		perGrain := a.rate * grain / 10
		if d := (a.wake - a.clock + perGrain - 1) / perGrain * grain; first == 0 || d < first {
			first = d
		}
	}
	return first
}

// ofAuthority reports whether the message is about votes and leases. All others only begin and
// end rounds of selection: a late or repeated one does only what a message in time could do as well.
func (f flight) ofAuthority() bool {
	switch f.message.(type) {
	case election.VoteRequest, election.VoteGrant, election.VoteRefusal, election.Release, election.Heartbeat, election.HeartbeatAck:
		return true
	}
	return false
}

// epoch is what all clocks read at the root.
const epoch election.Instant = 1 << 40

func timeOf(d election.Instant) time.Duration { return time.Duration(d).Round(time.Microsecond) }

// note adds a line to the log, if there is one.
func (w *world) note(format string, args ...any) {
	if w.log != nil {
		*w.log = append(*w.log, fmt.Sprintf(format, args...))
	}
}
