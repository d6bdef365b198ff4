package exhaustive

import (
	"fmt"

	"github.com/doyen-election/doyen/election"
)

// root is a world from which to explore, with a name that describes how it came about.
type root struct {
	name string
	*world
}

// clockRates are the explored rates. Constant rates at opposite edges are the worst case of the
// drift: leases end late and promises end early.
var clockRates = [][size]election.Instant{
	{rates.exact, rates.exact, rates.exact},
	{rates.slow, rates.fast, rates.fast},
	{rates.fast, rates.slow, rates.slow},
}

const (
	following = "all follow a"
	unheard   = "a leads by c's vote and is cut off, b has heard nothing"
	asking    = "the same, and b is about to ask for votes"
)

// roots returns the worlds from which to explore, each with all clock rates. The path to each
// is played one message after the other, from a start with a roster on otherwise empty disks.
func (m *mover) roots() ([]root, error) {
	var all []root
	assigned := clockRates
	if m.options.rates != nil {
		assigned = m.options.rates
	}
	for _, r := range assigned {
		for _, start := range []struct {
			name string
			play func(*world) *world
		}{
			{"nobody has voted", func(w *world) *world { return w }},
			{following, m.toLeader},
			{unheard, m.toUnheard},
			{asking, m.toAsking},
		} {
			if m.options.root != "" && m.options.root != start.name {
				continue
			}
			w, err := m.fresh(r)
			if err != nil {
				return nil, err
			}
			name := fmt.Sprintf("%s; clock rates %v", start.name, r)
			if w = start.play(w); w.fault != nil {
				return nil, fmt.Errorf("play root %q: %w", name, w.fault)
			}
			w.spent = 0
			all = append(all, root{name: name, world: w})
		}
	}
	return all, nil
}

func (m *mover) fresh(r [size]election.Instant) (*world, error) {
	w := &world{}
	for i := range w.agents {
		w.agents[i] = agent{clock: epoch, rate: r[i], disk: firstState(i), boot: bootOf(i, 0)}
	}
	m.hush = true
	for i := range w.agents {
		m.boot(w, i)
	}
	for i := range w.agents {
		m.step(w, i, election.ViewChanged{View: w.view()})
		for j := range i {
			m.meet(w, i, j)
		}
	}
	m.hush = false
	for i := range w.agents {
		m.tell(w, i)
	}
	if w.fault != nil {
		return nil, fmt.Errorf("start the agents: %w", w.fault)
	}
	return w, nil
}

// toLeader goes on until a leads and nothing is under way.
func (m *mover) toLeader(w *world) *world {
	w = m.quiet(w, func(flight) bool { return false })
	if !w.agents[0].leading {
		w.fail("root", "a does not lead")
	}
	return w
}

// toUnheard also goes on until a leads, but messages to b about votes and leases are lost. In the end a is
// cut off.
func (m *mover) toUnheard(w *world) *world {
	w = m.quiet(w, func(f flight) bool { return f.to == 1 && f.ofAuthority() })
	if !w.agents[0].leading {
		w.fail("root", "a does not lead")
	}
	w.agents[0].cut = true
	return w
}

// toAsking goes on from the end of toUnheard, until b has waited for an answer in vain.
func (m *mover) toAsking(w *world) *world {
	w = m.toUnheard(w)
	for w.agents[1].clock < epoch.Add(timing.Heartbeat*5/4) { // time for b's turn, and then for the answer timeout
		w = m.pastTheNext(w)
	}
	return w
}

// quiet lets messages arrive and writes end until nothing is under way. lost selects lost messages.
func (m *mover) quiet(w *world, lost func(flight) bool) *world {
	for {
		busy := false
		for i := range w.agents {
			if w.agents[i].alive && w.agents[i].pending != nil {
				w, busy = m.apply(w, action{kind: persisted, which: uint8(i)}), true
			}
		}
		switch {
		case len(w.network) > 0 && lost(w.network[0]):
			w.network = w.network[1:]
		case len(w.network) > 0:
			w = m.apply(w, action{kind: deliver})
		case !busy:
			return w
		}
	}
}

// pastTheNext plays all that is due now. Then it lets time pass until the next agent is due.
func (m *mover) pastTheNext(w *world) *world {
	for i := range w.agents {
		if a := &w.agents[i]; a.alive && a.clock >= a.wake {
			w = m.apply(w, action{kind: wake, which: uint8(i)})
		}
	}
	return m.apply(m.quiet(w, func(flight) bool { return false }), action{kind: pass})
}
