package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/doyen-election/doyen/codec"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// maxInbox bounds what waits for a paused agent; a real transport's queues are
// bounded too.
const maxInbox = 256

// agent is one host with its clock and disk, and the process on it, if alive.
type agent struct {
	id    int
	peer  election.PeerID
	name  string
	clock clock
	disk  disk
	seen  []sighting // by agent: what gossip told this one
	stand []standing // by election of the plan

	alive    bool
	life     uint32 // counts its processes
	boot     election.BootID
	joinedAt int64
	elector  *elector.Elector
	wakeAt   int64 // true time; never: not wanted
	paused   int   // pauses under way
	inbox    []election.Input
	draining bool
	stopping bool                    // was told to shut down
	ending   bool                    // has handed over, and ends
	contests []elector.ContestStatus // last polled, like a reader of the socket
	spin     spin
}

// standing is an agent's candidacy in one election.
type standing struct {
	candidate bool // it ever stands
	stands    bool // it does now
	priority  int  // advertised now
	usual     int  // above 0
}

func (w *world) newAgent(i int) *agent {
	a := &agent{id: i, peer: election.PeerID(fmt.Sprintf("p%d", i)), name: fmt.Sprintf("n%d", i), wakeAt: never}
	a.clock = clock{base: election.Instant(1e9 + w.rng.Int64N(1e14)), ppm: w.drawRate()}
	a.seen = make([]sighting, w.plan.voters+w.plan.observers)
	for range w.plan.elections {
		s := standing{candidate: w.rng.IntN(8) != 0, usual: pick(w.rng, 100, 100, 100, 50, 200)}
		s.stands, s.priority = s.candidate, s.usual
		a.stand = append(a.stand, s)
	}
	state := election.State{Peer: a.peer}
	if w.plan.prepared && i < w.plan.voters {
		state.Roster = &election.Roster{Cluster: "prepared", Version: election.Version{Counter: 1}, Voters: w.firstVoters()}
	}
	a.disk.put(w, a, state)
	return a
}

func (w *world) firstVoters() []election.Voter {
	var voters []election.Voter
	for i := range w.plan.voters {
		voters = append(voters, election.Voter{Name: fmt.Sprintf("n%d", i), Peer: election.PeerID(fmt.Sprintf("p%d", i))})
	}
	return voters
}

// ensureCandidates gives each election somebody who can lead it.
func (w *world) ensureCandidates() {
	for e := range w.plan.elections {
		if !slices.ContainsFunc(w.agents, func(a *agent) bool { return a.stand[e].candidate }) {
			s := &w.agents[w.rng.IntN(len(w.agents))].stand[e]
			s.candidate, s.stands = true, true
		}
	}
}

func (w *world) config(a *agent) elector.Config {
	c := elector.Config{Self: election.Holder{Peer: a.peer, Boot: a.boot}, Name: a.name, JoinedAt: a.joinedAt,
		Quorum: w.plan.quorum, Algorithm: w.plan.algorithm, Timing: w.plan.timing, Drift: elector.DefaultDrift,
		Preempt: w.plan.preempt, PreemptDelay: w.plan.preemptDelay, FixedDeadline: w.plan.fixed}
	switch {
	case w.plan.prepared || a.id >= w.plan.voters:
	case w.plan.voters == 1:
		c.Alone = true
	default:
		for _, v := range w.firstVoters() {
			c.Voters = append(c.Voters, v.Name)
		}
	}
	return c
}

// start runs a new process on the host, from what its disk holds.
func (w *world) start(a *agent) {
	if a.alive {
		return
	}
	a.life++
	a.boot = election.BootID(w.rng.Uint64())
	a.joinedAt = w.now + w.rng.Int64N(1000)
	a.alive, a.paused, a.draining, a.stopping, a.ending = true, 0, false, false, false
	a.inbox, a.contests = nil, nil
	clear(a.seen)
	state, err := codec.DecodeState(a.disk.bytes)
	if err != nil {
		w.fail("durable state", "%s can't read back what it wrote: %v", a.peer, err)
		return
	}
	a.elector, err = elector.New(w.config(a), state, a.clock.at(w.now), rand.New(rand.NewPCG(w.rng.Uint64(), 0)))
	if err != nil {
		w.fail("start", "%s: %v", a.peer, err)
		return
	}
	w.note(a, "STARTS as %s with %s", election.Holder{Peer: a.peer, Boot: a.boot}, describeState(state))
	for e, s := range a.stand {
		if s.stands {
			w.step(a, election.Campaign{Election: w.plan.elections[e], Priority: s.priority})
		}
	}
	w.advertise(a)
	w.step(a, election.Tick{})
	for _, b := range w.agents {
		w.dial(a, b, w.around(w.redial()))
	}
}

// stop ends the process. loud: the kernel closes its connections, and the
// others know at once.
func (w *world) stop(a *agent, loud bool) {
	if !a.alive {
		return
	}
	w.note(a, "STOPS, loud=%v", loud)
	a.alive, a.wakeAt, a.inbox, a.contests = false, never, nil, nil
	a.disk.crash(w, a)
	w.endStatusClaims(a)
	for _, b := range w.agents {
		if b != a {
			w.conns[a.id][b.id].ends[w.side(a, b)].told = false
			w.hangUp(a, b, loud)
		}
	}
	w.gossip(a)
}

// input hands the agent something, now or when it is no longer paused.
func (w *world) input(a *agent, in election.Input) {
	if !a.alive {
		return
	}
	if a.paused == 0 {
		w.step(a, in)
		return
	}
	if _, message := in.(election.Received); message && len(a.inbox) >= maxInbox {
		w.stats.Lost++
		return
	}
	a.inbox = append(a.inbox, in)
}

// inputSoon hands it to this process of the agent a little later.
func (w *world) inputSoon(a *agent, in election.Input) {
	life := a.life
	w.after(w.around(w.plan.delay/4), func() {
		if a.life == life {
			w.input(a, in)
		}
	})
}

// resume ends one pause. What came meanwhile is handled at once, and the timer
// that is overdue before or after it.
func (w *world) resume(a *agent, life uint32) {
	if !a.alive || a.life != life {
		return
	}
	if a.paused--; a.paused > 0 {
		return
	}
	w.note(a, "RESUMES with %d inputs", len(a.inbox))
	inbox := a.inbox
	a.inbox = nil
	first := w.chance(0.5)
	if first {
		w.step(a, election.Tick{})
	}
	for _, in := range inbox {
		w.step(a, in)
	}
	if !first {
		w.step(a, election.Tick{})
	}
}
