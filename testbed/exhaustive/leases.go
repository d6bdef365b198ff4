package exhaustive

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// LeaseOptions choose how far leases that change with the roster are explored.
type LeaseOptions struct {
	Leases []int // units of time; of the first roster and its successors, 0: the roster names none
	Asked  int   // the lease with which agents are started
	Until  int   // units of time
	States int   // how many states to visit at most
}

type LeaseResult struct {
	States    int
	Depth     int
	Complete  bool
	Held      int // states in which a holder acts
	Violation error
	Path      []string
}

func (r LeaseResult) String() string {
	return fmt.Sprintf("%d states, complete to depth %d (all: %v); in %d somebody holds the lease", r.States, r.Depth, r.Complete, r.Held)
}

// unit is so long that no step falls on a rounded end.
const unit = election.Instant(time.Second)

// A leaseWorld has two holders, a and b, of which a leads at the start, and two voters, v and w,
// which are a majority together.
// The voters are the product's own quorum.Voter with its ledger, the holders its quorum.Lease.
// Each agent learns of each roster at any time, in order. A request or a renewal is answered at
// once, late or never; an answer counts from the send. A voter may die and start from its disk;
// a holder may be followed by a life that knows what is on record. Clocks run alike: the drift
// has its own tests.
type leaseWorld struct {
	now     int
	rosters []*election.Roster
	voters  [2]leaseVoter
	holders [2]leaseHolder
	sent    []leaseSend // under way to the voters
	said    []string
}

type leaseVoter struct {
	voter  *quorum.Voter
	ledger *quorum.Ledger
	deaths int
}

type leaseHolder struct {
	roster   int
	term     election.Term
	lease    *quorum.Lease
	shortest time.Duration
	lives    int
}

type leaseSend struct {
	holder, voter, at, roster int
	term                      election.Term
	length                    time.Duration
	renews                    bool
}

var leasePeers = [2]election.PeerID{"v", "w"}

func leaseHolderOf(i int) election.Holder {
	return election.Holder{Peer: election.PeerID(rune('a' + i)), Lineage: 1}
}

func (o LeaseOptions) asked() time.Duration { return time.Duration(o.Asked) * time.Duration(unit) }

func (w *leaseWorld) instant() election.Instant { return epoch + election.Instant(w.now)*unit }

func newLeaseWorld(o LeaseOptions) *leaseWorld {
	w := &leaseWorld{}
	for i, l := range o.Leases {
		w.rosters = append(w.rosters, &election.Roster{Cluster: "x", Version: election.Version{Driver: election.Term(i), Counter: 1},
			Voters: votersNamed("vw"), Settings: election.Settings{Lease: time.Duration(l) * time.Duration(unit)}})
	}
	for i := range w.voters {
		w.voters[i].start(o, i, election.State{Peer: leasePeers[i], Roster: w.rosters[0]}, w.instant())
	}
	for i := range w.holders {
		w.holders[i].shortest = o.asked()
		w.holders[i].follow(w.rosters[0])
	}
	for _, text := range []string{"a asks for votes", "what a sent at 0 reaches v", "what a sent at 0 reaches w"} {
		steps := w.steps(o)
		steps[slices.IndexFunc(steps, func(s leaseStep) bool { return s.text == "0: "+text })].do(w)
	}
	return w
}

func (v *leaseVoter) start(o LeaseOptions, i int, s election.State, now election.Instant) {
	v.ledger = quorum.NewLedger(s, o.asked())
	v.voter = quorum.NewVoter(quorum.VoterConfig{Self: leasePeers[i], Lease: o.asked()}, v.ledger, now)
}

// write makes all that is due durable, and returns what leaves.
func (v *leaseVoter) write(now election.Instant) []election.Envelope {
	if p := v.ledger.Next(now); p != nil {
		v.ledger.Persisted(p.Write)
	}
	v.voter.Settle(now)
	return v.ledger.Take()
}

func (w *leaseWorld) clone() *leaseWorld {
	n := *w
	n.sent, n.said = slices.Clone(w.sent), slices.Clip(w.said)
	for i := range n.voters {
		n.voters[i].ledger = w.voters[i].ledger.Clone()
		n.voters[i].voter = w.voters[i].voter.Clone(n.voters[i].ledger)
	}
	for i := range n.holders {
		if l := n.holders[i].lease; l != nil {
			n.holders[i].lease = l.Clone()
		}
	}
	return &n
}

// key distinguishes states.
func (w *leaseWorld) key() string {
	text := fmt.Sprint(w.now)
	for _, v := range w.voters {
		s := v.ledger.State()
		text += fmt.Sprint("|", s.Roster.Version.Driver, s.Grants["e"], max(0, v.voter.PromiseEnd("e")-w.instant()), v.voter.HoldEnd("e", election.Holder{}) != 0, v.deaths)
	}
	for _, h := range w.holders {
		text += fmt.Sprint("|", h.roster, h.term, h.shortest, h.lives)
		if h.lease != nil {
			text += fmt.Sprint(h.lease.Length(), h.lease.End()-w.instant(), h.lease.Counted())
		}
	}
	return text + fmt.Sprint("|", w.sent)
}

func (w *leaseWorld) acts(i int) bool {
	l := w.holders[i].lease
	return l != nil && w.instant() < l.End()
}

type leaseStep struct {
	text string
	do   func(*leaseWorld)
}

func (w *leaseWorld) steps(o LeaseOptions) (steps []leaseStep) {
	can := func(do func(*leaseWorld), format string, args ...any) {
		steps = append(steps, leaseStep{fmt.Sprintf("%d: ", w.now) + fmt.Sprintf(format, args...), do})
	}
	if w.now < o.Until {
		can(func(w *leaseWorld) {
			w.now++
			for i := range w.voters {
				w.voters[i].voter.Tick(w.instant())
			}
		}, "time passes")
	}
	for i := range w.voters {
		v := &w.voters[i]
		if next := int(v.ledger.State().Roster.Version.Driver) + 1; next < len(w.rosters) {
			can(func(w *leaseWorld) {
				w.voters[i].voter.Adopt(w.instant(), w.rosters[next])
				w.voters[i].write(w.instant())
			}, "%s learns of roster %d", leasePeers[i], next)
		}
		if v.deaths == 0 {
			can(func(w *leaseWorld) {
				v := &w.voters[i]
				v.deaths++
				v.start(o, i, v.ledger.State().Clone(), w.instant())
			}, "%s dies and starts", leasePeers[i])
		}
	}
	for i := range w.holders {
		w.holderSteps(o, i, can)
	}
	for at, s := range w.sent {
		can(func(w *leaseWorld) {
			w.sent = slices.Delete(w.sent, at, at+1)
			w.arrive(s)
		}, "what %s sent at %d reaches %s", leaseHolderOf(s.holder).Peer, s.at, leasePeers[s.voter])
	}
	return steps
}

func (w *leaseWorld) holderSteps(o LeaseOptions, i int, can func(func(*leaseWorld), string, ...any)) {
	h := &w.holders[i]
	name := leaseHolderOf(i).Peer
	if h.roster+1 < len(w.rosters) {
		can(func(w *leaseWorld) {
			h := &w.holders[i]
			h.roster++
			h.follow(w.rosters[h.roster])
			if h.lease != nil {
				h.lease.Reroster(w.rosters[h.roster])
			}
		}, "%s learns of roster %d", name, h.roster+1)
	}
	if h.term == 0 {
		can(func(w *leaseWorld) {
			h := &w.holders[i]
			h.term = election.Term(i + 1)
			length := o.asked()
			if l := w.rosters[h.roster].Lease(); l != 0 {
				length = l
			}
			h.lease = quorum.NewLease(h.term, length, 0, w.rosters[h.roster])
			w.send(i, false)
		}, "%s asks for votes", name)
		return
	}
	if w.acts(i) && len(w.sent) == 0 {
		can(func(w *leaseWorld) { w.send(i, true) }, "%s sends a heartbeat", name)
		can(func(w *leaseWorld) { w.send(i, false) }, "%s asks for its term again", name)
		if h.lives == 0 {
			can(func(w *leaseWorld) {
				h := &w.holders[i]
				h.lives++
				h.lease = quorum.ResumeLease(h.term, h.shortest, 0, w.rosters[h.roster], h.lease.End())
			}, "%s dies and goes on", name)
		}
	}
}

// follow keeps the shortest lease, as elector does when it begins and with each roster.
func (h *leaseHolder) follow(r *election.Roster) {
	if l := r.Lease(); l != 0 {
		h.shortest = min(h.shortest, l)
	}
}

func (w *leaseWorld) send(i int, renews bool) {
	h := &w.holders[i]
	for v := range w.voters {
		w.sent = append(w.sent, leaseSend{holder: i, voter: v, at: w.now, roster: h.roster, term: h.term, length: h.lease.Length(), renews: renews})
	}
}

// arrive has a voter handle a message, and counts what it answers.
func (w *leaseWorld) arrive(s leaseSend) {
	v, now, by := &w.voters[s.voter], w.instant(), leaseHolderOf(s.holder)
	version := v.ledger.State().Roster.Version
	honoured := false
	if s.renews {
		nacks := v.voter.Renew(now, by.Peer, election.Heartbeat{Lineage: by.Lineage, Version: w.rosters[s.roster].Version,
			Claims: []election.Claim{{Election: "e", Term: s.term}}})
		honoured = len(nacks) == 0
	} else {
		v.voter.Request(now, by.Peer, election.VoteRequest{Election: "e", Term: s.term, Holder: by, Lease: s.length, Roster: *w.rosters[s.roster]})
		v.voter.Tick(now) // a request that has to wait is refused: its sender asks again
		for _, e := range v.write(now) {
			_, granted := e.Message.(election.VoteGrant)
			honoured = honoured || granted
		}
	}
	if l := w.holders[s.holder].lease; honoured && l.Term == s.term {
		l.Count(leasePeers[s.voter], epoch+election.Instant(s.at)*unit, version)
	}
}

// WanderLeases takes steps at random, on many ways, and so gets deeper.
func WanderLeases(o LeaseOptions, rng *rand.Rand, ways, steps int) (r LeaseResult) {
	first := newLeaseWorld(o)
	for range ways {
		w := first.clone()
		for range steps {
			all := w.steps(o)
			if len(all) == 0 {
				break
			}
			step := all[rng.IntN(len(all))]
			w.said = append(w.said, step.text)
			step.do(w)
			r.States++
			if w.acts(0) || w.acts(1) {
				r.Held++
			}
			if r.Violation = w.overlap(); r.Violation != nil {
				r.Path = w.said
				return r
			}
		}
	}
	return r
}

func (w *leaseWorld) overlap() error {
	if !w.acts(0) || !w.acts(1) {
		return nil
	}
	return fmt.Errorf("a acts until %d and b until %d", (w.holders[0].lease.End()-epoch)/unit, (w.holders[1].lease.End()-epoch)/unit)
}

// ExploreLeases visits the states breadth first.
func ExploreLeases(o LeaseOptions) LeaseResult {
	level := []*leaseWorld{newLeaseWorld(o)}
	seen := map[string]bool{level[0].key(): true}
	r := LeaseResult{States: 1}
	for ; len(level) > 0; r.Depth++ {
		var next []*leaseWorld
		for _, w := range level {
			for _, step := range w.steps(o) {
				n := w.clone()
				n.said = append(n.said, step.text)
				step.do(n)
				k := n.key()
				if seen[k] {
					continue
				}
				seen[k] = true
				r.States++
				if n.acts(0) || n.acts(1) {
					r.Held++
				}
				if r.Violation = n.overlap(); r.Violation != nil {
					r.Path = n.said
					return r
				}
				if r.States >= o.States {
					return r
				}
				next = append(next, n)
			}
		}
		level = next
	}
	r.Complete = true
	return r
}
