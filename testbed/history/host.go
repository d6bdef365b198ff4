package history

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// host is an agent with its disk, clock and program.
type host struct {
	world       *world
	id          int
	alive       bool
	boot        election.BootID
	elector     *elector.Elector
	base        election.Instant // of the clock, at the true time 0
	ppm         int64            // by which it runs fast
	disk        election.State
	program     program
	wakeAt      int64
	pausedUntil int64
	waiting     []func() // until the pause ends
	cut         bool
}

func (h *host) peer() election.PeerID { return election.PeerID(fmt.Sprintf("p%d", h.id)) }

func (h *host) clock() election.Instant {
	return h.base + election.Instant(h.world.now+h.world.now*h.ppm/1_000_000)
}

// due is the true time at which the clock has reached an instant.
func (h *host) due(i election.Instant) int64 {
	if i == election.Never {
		return never
	}
	return int64(float64(i-h.base)/(1_000_000+float64(h.ppm))*1_000_000) + 1_000
}

// start runs a new process.
func (h *host) start() error {
	h.boot++
	h.alive, h.pausedUntil, h.waiting = true, 0, nil
	h.program = program{host: h}
	var err error
	h.elector, err = elector.New(elector.Config{Self: election.Holder{Peer: h.peer(), Boot: h.boot}, Name: string(h.peer()),
		JoinedAt: int64(h.boot)*10 + int64(h.id), Quorum: true, Algorithm: elector.Bully, Timing: timing, Drift: elector.DefaultDrift},
		h.disk, h.clock(), rand.New(rand.NewPCG(h.world.rng.Uint64(), 0)))
	if err != nil {
		return fmt.Errorf("start %s: %w", h.peer(), err)
	}
	h.step(election.Campaign{Election: election.Default, Priority: election.DefaultPriority})
	h.world.views()
	for _, o := range h.world.hosts {
		if o != h && o.alive {
			h.input(o.boot, o, h)
			h.input(h.boot, h, o)
		}
	}
	return nil
}

// input tells one host that it is connected with another.
func (h *host) input(life election.BootID, at, with *host) {
	boot := with.boot
	h.world.after(h.world.delay(), func() {
		at.do(life, func() { at.step(election.PeerConnected{Peer: with.peer(), Boot: boot}) })
	})
}

// crash ends the process. Its connections close.
func (h *host) crash() {
	h.alive, h.wakeAt = false, never
	h.program.die()
	for _, o := range h.world.hosts {
		if o.alive {
			o.later(func() { o.step(election.PeerLost{Peer: h.peer()}) })
		}
	}
	h.world.views()
}

// later does something in this life of the process, after a delay.
func (h *host) later(do func()) {
	life := h.boot
	h.world.after(h.world.delay(), func() { h.do(life, do) })
}

// do does something, unless that life of the process is over: now, or when it
// goes on.
func (h *host) do(life election.BootID, do func()) {
	switch {
	case !h.alive || h.boot != life:
	case h.world.now < h.pausedUntil:
		h.waiting = append(h.waiting, do)
	default:
		do()
	}
}

// pause stops the process for that long.
func (h *host) pause(d time.Duration) {
	if h.pausedUntil > h.world.now {
		return
	}
	h.pausedUntil = h.world.now + int64(d)
	life := h.boot
	h.world.after(d, func() {
		waiting := h.waiting
		h.waiting = nil
		for _, do := range waiting {
			h.do(life, do)
		}
	})
}

// leads reports whether the agent says now that it leads.
func (h *host) leads() bool {
	now := h.clock()
	for _, c := range h.elector.Contests() {
		if leader, ok := c.LeaderAt(now); ok && leader.Peer == h.peer() && leader.Boot == h.boot {
			return c.State == elector.Leading
		}
	}
	return false
}

// step lets the agent handle one input, and carries out what it asks for.
func (h *host) step(in election.Input) {
	w := h.world
	out := h.elector.Step(h.clock(), in)
	for _, x := range out.Withdraw {
		if h.program.stop() {
			h.later(func() { h.step(election.Stopped{Election: x.Election, Term: x.Term}) })
		}
	}
	if p := out.Persist; p != nil {
		h.later(func() {
			h.disk = p.State
			h.step(election.Persisted{Write: p.Write})
		})
	}
	for _, s := range out.Send {
		w.send(h, s)
	}
	for _, a := range out.Announce {
		if a.Leader.Peer == h.peer() && a.Leader.Boot == h.boot && a.Event == election.Leading {
			w.leaderships++
			h.program.lead(a.Term)
		}
	}
	h.wakeAt = max(w.now+1, h.due(out.WakeAt))
}
