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
	Leases []int // of the first roster and its successors, in units of time; 0: the roster names no lease
	Asked  int   // the lease with which agents are started
	Until  int   // when time stops, in units of time
	States int   // how many states to visit at most
}

// LeaseResult is the result of ExploreLeases and WanderLeases.
type LeaseResult struct {
	Found
	Held int // states in which a holder acts
}

func (r LeaseResult) String() string {
	return fmt.Sprintf("%d states in which somebody holds the lease; %v", r.Held, r.Found)
}

// unit is the time between steps: so long that a lease, whose end is rounded, never ends just at a step.
const unit = election.Instant(time.Second)

// A leaseWorld has two holders, a and b, of which a leads at the start, and two voters, v and w,
// which are a majority together.
// The voters are the product's own quorum.Voter with its ledger, the holders its quorum.Lease.
// Each agent learns of each roster at any time, in order. A request or a renewal is answered at once, late or
// never. A lease counts from the send of the request or renewal that won it. A voter may die and start from its
// disk. A holder may die and go on in a second life with its record. All clocks have the same rate: the drift
// has its own tests.
type leaseWorld struct {
	now     int
	rosters []*election.Roster
	voters  [2]leaseVoter
	holders [2]leaseHolder
	sent    []leaseSend // under way to the voters
	o       LeaseOptions
	found   *LeaseResult // counts what is found
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
	w := &leaseWorld{o: o, found: &LeaseResult{}}
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
	w.found.Violation = take(w, "0: a asks for votes", "0: what a sent at 0 reaches v", "0: what a sent at 0 reaches w")
	return w
}

func (v *leaseVoter) start(o LeaseOptions, i int, s election.State, now election.Instant) {
	v.ledger = quorum.NewLedger(s, o.asked())
	v.voter = quorum.NewVoter(election.Config{Quorum: true, Self: election.Holder{Peer: leasePeers[i]}, Timing: election.Timing{Lease: o.asked()}}, v.ledger, now)
}

// write makes all that is due durable, and returns the messages that may then leave.
func (v *leaseVoter) write(now election.Instant) []election.Envelope {
	if p := v.ledger.Next(now); p != nil {
		v.ledger.Persisted(p.Write)
	}
	v.voter.Settle(now)
	return v.ledger.Take()
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

func (w *leaseWorld) steps() (steps []step[*leaseWorld]) {
	can := func(do func(*leaseWorld), format string, args ...any) {
		steps = append(steps, step[*leaseWorld]{fmt.Sprintf("%d: ", w.now) + fmt.Sprintf(format, args...), do})
	}
	if w.now < w.o.Until {
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
				w.voters[i].voter.Adopt(w.instant(), w.rosters[next], false)
				w.voters[i].write(w.instant())
			}, "%s learns of roster %d", leasePeers[i], next)
		}
		if v.deaths == 0 {
			can(func(w *leaseWorld) {
				v := &w.voters[i]
				v.deaths++
				v.start(w.o, i, v.ledger.State().Clone(), w.instant())
			}, "%s dies and starts", leasePeers[i])
		}
	}
	for i := range w.holders {
		w.holderSteps(i, can)
	}
	for at, s := range w.sent {
		can(func(w *leaseWorld) {
			w.sent = slices.Delete(w.sent, at, at+1)
			w.arrive(s)
		}, "what %s sent at %d reaches %s", leaseHolderOf(s.holder).Peer, s.at, leasePeers[s.voter])
	}
	return steps
}

func (w *leaseWorld) holderSteps(i int, can func(func(*leaseWorld), string, ...any)) {
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
			length := w.o.asked()
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

// follow keeps the shortest lease of all rosters so far, as the elector does.
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

// arrive lets a voter handle a message, and the holder count the answer.
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
		v.voter.Tick(now) // refuses a request that has to wait: its sender asks again
		for _, e := range v.write(now) {
			_, granted := e.Message.(election.VoteGrant)
			honoured = honoured || granted
		}
	}
	if l := w.holders[s.holder].lease; honoured && l.Term == s.term {
		l.Count(leasePeers[s.voter], epoch+election.Instant(s.at)*unit, version)
	}
}

// WanderLeases takes random steps on many paths, and so gets deeper than ExploreLeases.
func WanderLeases(o LeaseOptions, rng *rand.Rand, ways, steps int) LeaseResult {
	first := newLeaseWorld(o)
	r, c := first.found, newCopier()
	for range ways {
		w, path := copied(c, first), []string(nil)
		for range steps {
			all := w.steps()
			if len(all) == 0 {
				break
			}
			step := all[rng.IntN(len(all))]
			path = append(path, step.text)
			step.do(w)
			r.States++
			if r.Violation = w.check(); r.Violation != nil {
				r.Path = path
				return *r
			}
		}
	}
	return *r
}

// ExploreLeases visits the states breadth first.
func ExploreLeases(o LeaseOptions) LeaseResult {
	w := newLeaseWorld(o)
	if w.found.Violation == nil {
		w.found.Found = search(w, o.States)
	}
	return *w.found
}

// check searches for two holders that act at once.
func (w *leaseWorld) check() error {
	a, b := w.acts(0), w.acts(1)
	if a || b {
		w.found.Held++
	}
	if !a || !b {
		return nil
	}
	return fmt.Errorf("a acts until %d and b until %d", (w.holders[0].lease.End()-epoch)/unit, (w.holders[1].lease.End()-epoch)/unit)
}
