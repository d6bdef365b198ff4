package simulation

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/history"
)

const (
	// maxAsked bounds the operations of one seed, so that judging them takes little time.
	maxAsked = 400
	// judging bounds the search for an order of the operations.
	judging = 20 * time.Second
	// stalls: in one of so many operations, a program pauses between the check of its lease and its
	// write.
	stalls = 20
)

// counter is the counter that programs of the default election change while their agents lead,
// and the history of the operations. The counter makes its own draws, so that a seed gives the
// same run with and without it.
type counter struct {
	history.Register
	rng        *rand.Rand
	interval   time.Duration // between a program's operations, on average
	adders     map[election.Holder]*adder
	operations []porcupine.Operation
	asked      int
}

// adder is the program of one leadership. It reads the counter, and then adds to the value that
// it knows, for as long as its lease allows.
type adder struct {
	client int
	host   *agent
	epoch  int
	holder election.Holder
	reads  bool // it has not read the counter yet
	value  int
}

func (w *world) newCounter() *counter {
	seed := w.options.Seed
	return &counter{Register: history.Register{Unguarded: w.options.unguarded}, adders: map[election.Holder]*adder{},
		interval: (w.plan.calm + w.plan.chaos) / (maxAsked / 2),
		rng:      rand.New(rand.NewPCG(seed, 0x636f756e74+w.options.Shrunk.Variation<<40))}
}

// startAdding starts the program of a leadership that was just announced. A cluster that an
// agent formed alone has no counter, since its tokens begin at 1 again.
func (w *world) startAdding(a *agent, l *contestLog, holder election.Holder) {
	if l != w.logs[0] || !w.plan.quorum {
		return
	}
	c := w.counter
	p := &adder{client: len(c.adders) + 1, host: a, epoch: a.clock.epoch, holder: holder, reads: true}
	c.adders[holder] = p
	w.ask(p)
}

// ask lets the program check its lease, and send its next operation.
func (w *world) ask(p *adder) {
	c := w.counter
	x := w.logs[0].find(program, p.holder)
	switch {
	case c.asked == maxAsked || c.adders[p.holder] != p || x == nil || !x.acting(w.Now):
		return
	case p.host.frozen > 0:
		w.after(c.interval, func() { w.ask(p) })
		return
	}
	c.asked++
	call, token := w.Now, x.term
	stalled := time.Duration(0)
	if c.rng.IntN(stalls) == 0 {
		stalled = around(c.rng, 2*w.plan.timing.Lease)
	}
	var send func()
	send = func() {
		switch {
		case p.epoch != p.host.clock.epoch: // its host was rebooted
		case p.host.frozen > 0:
			w.after(c.interval, send)
		default:
			w.after(around(c.rng, w.plan.delay), func() { w.serve(p, call, token) })
		}
	}
	w.after(stalled, send)
}

// serve carries out the program's operation, and sends the answer. After a refusal no answer is
// sent, and the program ends.
func (w *world) serve(p *adder, call int64, token election.Term) {
	c := w.counter
	if !c.Admit(token) {
		w.note(p.host, "its program is REFUSED by the counter: its token %d is old", token)
		return
	}
	o := porcupine.Operation{ClientId: p.client, Input: history.Read, Call: call, Output: history.Result{}, Return: math.MaxInt64}
	if !p.reads {
		o.Input, c.Value = history.Add, p.value+1
	}
	value, i := c.Value, len(c.operations)
	c.operations = append(c.operations, o)
	w.after(around(c.rng, w.plan.delay), func() {
		if p.epoch != p.host.clock.epoch {
			return
		}
		c.answered(i, value, w.Now)
		p.reads, p.value = false, value
		w.after(around(c.rng, c.interval), func() { w.ask(p) })
	})
}

func (c *counter) answered(i, value int, at int64) {
	c.operations[i].Output, c.operations[i].Return = history.Result{Known: true, Value: value}, at
}

// watchCounter reads the counter from outside the cluster now and then, without a token.
func (w *world) watchCounter() {
	c := w.counter
	if c.asked == maxAsked || !w.plan.quorum {
		return
	}
	w.after(around(c.rng, 4*c.interval), w.watchCounter)
	c.asked++
	call := w.Now
	w.after(around(c.rng, w.plan.delay), func() {
		value, i := c.Value, len(c.operations)
		c.operations = append(c.operations, porcupine.Operation{Input: history.Read, Call: call, Output: history.Result{}, Return: math.MaxInt64})
		w.after(around(c.rng, w.plan.delay), func() { c.answered(i, value, w.Now) })
	})
}

// checkCounter judges the history of the counter.
func (w *world) checkCounter() {
	c := w.counter
	if w.violation != nil || len(c.operations) == 0 {
		return
	}
	if porcupine.CheckOperationsTimeout(history.Counter(0), c.operations, judging) == porcupine.Illegal {
		w.fail("counter", "no order of %d operations explains the answers that they got, up to %d", len(c.operations), c.Value)
	}
	w.stats.Counted, w.stats.Refused = len(c.operations), c.Refused
}
