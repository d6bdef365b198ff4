package history

import (
	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/election"
)

// program is what runs on a host and acts while its agent leads.
type program struct {
	host     *host
	term     election.Term // it acts in; 0: it does not act
	value    int           // of the register, as far as it knows
	underway *porcupine.Operation
}

// lead begins to act in a term.
func (p *program) lead(t election.Term) {
	p.term = t
	if p.underway == nil { // else its answer comes first
		p.begin()
	}
}

// begin reads what the predecessors left. The read carries the token, so from
// here on the register refuses theirs.
func (p *program) begin() {
	w, token := p.host.world, p.term
	p.underway = w.history.call(p.host.id, Read, w.now)
	p.ask(token, func() (int, bool) { return w.register.value, w.register.admit(token) })
}

// addOne looks at the lease, and writes. What stops the process in between
// comes at the worst time.
func (p *program) addOne() {
	w, h := p.host.world, p.host
	if p.term == 0 || p.underway != nil || !h.leads() {
		return
	}
	token, next, life := p.term, p.value+1, h.boot
	p.underway = w.history.call(h.id, Add, w.now)
	if w.chance(1, 40) {
		h.pause(w.around(2 * timing.Lease))
	}
	h.do(life, func() {
		p.ask(token, func() (int, bool) {
			if !w.register.admit(token) {
				return 0, false
			}
			w.register.value = next
			return next, true
		})
	})
}

// ask sends a request to the register, which does it when it arrives. With the
// answer the program knows the value, and goes on after a while; or, if it leads
// in another term by then, begins anew. A refusal ends its part.
func (p *program) ask(token election.Term, do func() (int, bool)) {
	w, life, o := p.host.world, p.host.boot, p.underway
	answered := func(value int, ok bool) {
		p.underway = nil
		if ok { // else nothing happened, and there is nothing to record
			w.history.answered(o, value, w.now)
			w.done++
		}
		switch {
		case p.term != token && p.term != 0:
			p.begin()
		case !ok:
			p.term = 0
		default:
			p.value = value
			w.after(w.around(interval), func() { p.host.do(life, p.addOne) })
		}
	}
	w.after(w.delay(), func() {
		value, ok := do()
		w.after(w.delay(), func() { p.host.do(life, func() { answered(value, ok) }) })
	})
}

// stop ends acting, and reports whether the program has stopped: one whose
// write is under way can't say so.
func (p *program) stop() bool {
	p.term = 0
	return p.underway == nil
}

// die leaves an operation behind whose end nobody hears.
func (p *program) die() {
	if p.underway != nil {
		p.host.world.history.unknown(p.underway)
	}
	*p = program{host: p.host}
}
