package exhaustive

import (
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/messages"
)

// mover carries actions out. Each worker has one.
type mover struct {
	options Options
	own     [size]bool // the processes of which the new world has its own copies
	dies    bool       // the process dies in the step under way, once its decision is on record
	hush    bool       // reports wait until both ends are connected
	copier  *copier
}

func newMover(o Options) *mover { return &mover{options: o, copier: newCopier()} }

// apply returns the world that follows from the action. It does not change the world before.
func (m *mover) apply(before *world, x action) *world {
	w := *before
	w.network = slices.Clone(before.network)
	m.own = [size]bool{}
	if x.kind.misfortune() {
		w.spent++
	}
	if x.swap {
		w.swaps++
	}
	i := int(x.which)
	switch x.kind {
	case deliver, duplicate, lose, delay, fatal:
		m.handle(&w, x.kind, i)
	case persisted, wake, stopped, resign:
		m.input(&w, x.kind, i)
	case crash, tornCrash:
		m.crash(&w, i, x.kind == tornCrash)
	case restart:
		w.agents[i].row = election.Authority{}
		m.start(&w, i)
	case revive:
		m.start(&w, i)
	case pass:
		w.pass(w.untilDue(m.options.Bounds.grain()))
	case sleep:
		w.pass(election.Instant(timing.Lease))
	case slow:
		w.agents[i].slow = true
		w.note("%s's disk is slow", peerOf(i))
	case pause, resume:
		w.agents[i].paused = x.kind == pause
		w.note("%s is paused: %t", peerOf(i), x.kind == pause)
	case cut, heal:
		w.agents[i].cut = x.kind == cut
		w.note("%s is cut off: %t", peerOf(i), x.kind == cut)
	}
	return &w
}

// handle applies an action to a message under way.
func (m *mover) handle(w *world, k kind, i int) {
	f := w.network[i]
	switch k {
	case delay:
		w.network[i].late = true
		w.note("may be late: %s", f)
		return
	case duplicate:
		w.network[i].late = true
		w.note("a copy stays under way of: %s", f)
	default:
		w.network = slices.Delete(w.network, i, i+1)
	}
	if k == lose {
		w.note("lost: %s", f)
		return
	}
	m.dies = k == fatal
	m.step(w, f.to, election.Received{From: peerOf(f.from), Message: f.message})
	if m.dies {
		m.dies = false
		m.crash(w, f.to, false)
	}
}

// input hands an agent the input of an action.
func (m *mover) input(w *world, k kind, i int) {
	a := &w.agents[i]
	switch k {
	case persisted:
		write := a.pending.Write
		w.written(i)
		m.step(w, i, election.Persisted{Write: write})
	case wake:
		m.step(w, i, election.Tick{})
	case resign:
		m.step(w, i, election.Resign{Election: election.Default, Request: 1})
	case stopped:
		term := a.owed
		a.owed = 0
		a.acts = slices.DeleteFunc(slices.Clone(a.acts), func(x act) bool { return x.holder == w.holder(i) && x.term <= term })
		m.step(w, i, election.Stopped{Election: election.Default, Term: term})
	}
}

// pass lets true time pass.
func (w *world) pass(d election.Instant) {
	w.note("%v pass", timeOf(d))
	for i := range w.agents {
		a := &w.agents[i]
		a.clock += d / 10 * a.rate
		a.sweep()
	}
}

// written puts the write under way on the disk.
func (w *world) written(i int) {
	a := &w.agents[i]
	after := a.disk.After(a.pending)
	w.checkDisk(i, a.disk, &after)
	a.before, a.disk, a.pending, a.slow = a.disk, &after, nil, false
}

// crash ends the process and closes its connections. The host's program goes on acting until the
// last deadline that it knows.
func (m *mover) crash(w *world, i int, landed bool) {
	a := &w.agents[i]
	w.note("%s crashes, its write under way: %t, on disk: %t", peerOf(i), a.pending != nil, landed)
	if landed {
		w.written(i)
	}
	if i == size-1 && m.options.broken == losesAcknowledgedWrite && a.before != nil {
		a.disk = a.before
	}
	a.alive, a.process, a.pending, a.leading, a.owed, a.wake = false, nil, nil, false, 0, 0
	a.paused, a.slow = false, false
	w.network = slices.DeleteFunc(w.network, func(f flight) bool { return f.to == i })
	for j := range w.agents {
		if w.agents[j].alive && !w.agents[i].cut && !w.agents[j].cut {
			m.step(w, j, election.PeerLost{Peer: peerOf(i)})
		}
	}
}

// start begins a new life of the process, from the state on its disk, and connects it with all
// agents alive.
func (m *mover) start(w *world, i int) {
	m.boot(w, i)
	for j := range w.agents {
		if j == i || !w.agents[j].alive {
			continue
		}
		m.step(w, j, election.ViewChanged{View: w.view()})
		m.connect(w, i, j)
	}
}

func (m *mover) boot(w *world, i int) {
	a := &w.agents[i]
	if a.row == (election.Authority{}) || !m.options.Bounds.Lives {
		a.boot, a.life = bootOf(i, int(a.boot-1)/size+1), 0
	}
	a.life++
	w.note("life %d of %s starts, on record is %+v", a.life, w.holder(i), a.row)
	a.alive, a.process, a.wake = true, newProcess(i, w.holder(i), a.life, *a.disk, a.clock, m.options.Ring), a.clock
	m.own[i] = true
	if a.life > 1 {
		if m.options.broken == leasesAgain && a.row.Term != 0 {
			a.row.Until = a.clock.Add(timing.Lease)
		}
		a.process.goOn(a.life, a.row)
		a.leading = a.process.contest.Role() == contest.Leader
	}
	if i < size-1 {
		m.step(w, i, election.Campaign{Election: election.Default, Priority: election.DefaultPriority})
	}
	m.step(w, i, election.ViewChanged{View: w.view()})
}

// connect notifies both agents of their connection, and then delivers their reports.
func (m *mover) connect(w *world, i, j int) {
	m.hush = true
	m.meet(w, i, j)
	m.hush = false
	m.tell(w, i)
	m.tell(w, j)
}

func (m *mover) meet(w *world, i, j int) {
	m.step(w, j, election.PeerConnected{Peer: peerOf(i), Lineage: w.agents[i].boot})
	m.step(w, i, election.PeerConnected{Peer: peerOf(j), Lineage: w.agents[j].boot})
}

// step lets an agent handle one input, and carries out its output in the order of a real agent:
// withdraw, persist, send, announce.
func (m *mover) step(w *world, i int, in election.Input) {
	a := &w.agents[i]
	if !a.alive || w.fault != nil {
		return
	}
	if !m.own[i] {
		a.process, m.own[i] = copied(m.copier, a.process), true
	}
	out := a.process.step(a.clock, in)
	a.rounds = a.process.rounds()
	if w.log != nil {
		w.note("%s [%v] %s%s", peerOf(i), timeOf(a.clock-epoch), messages.Describe(in), messages.Output(out))
	}
	if m.options.Bounds.Lives {
		a.row = a.process.contest.Authority() // on record before anything else (K1)
	}
	if m.dies {
		return
	}
	for _, x := range out.Withdraw {
		if x.Election == election.Default {
			a.leading, a.owed = false, x.Term
		}
	}
	if out.Persist != nil {
		w.begin(i, out.Persist)
	}
	for _, s := range out.Send {
		w.send(i, s, m.options.maxTerm())
	}
	a.wake = out.WakeAt
	if a.wake <= a.clock {
		w.fail("wake", "%s wants to be woken at %d, it is %d", peerOf(i), a.wake, a.clock)
	}
	for _, x := range out.Announce {
		w.announced(i, x)
	}
	if a.leading {
		w.poll(i)
	}
	if !m.hush {
		m.tell(w, i)
	}
}

// tell delivers agent i's reports and inquiries at once. Agents send them on a new connection. All that they
// contain, a voter also reports when it is asked for its vote.
func (m *mover) tell(w *world, i int) {
	for {
		at := slices.IndexFunc(w.network, func(f flight) bool {
			switch f.message.(type) {
			case election.Report, election.Inquiry:
				return f.from == i
			}
			return false
		})
		if at < 0 {
			return
		}
		f := w.network[at]
		w.network = slices.Delete(w.network, at, at+1)
		m.step(w, f.to, election.Received{From: peerOf(i), Message: f.message})
	}
}

func (w *world) begin(i int, p *election.Persist) {
	if w.agents[i].pending != nil {
		w.fail("one write", "%s begins a write while another is under way", peerOf(i))
	}
	w.agents[i].pending = p
}

// send puts a message under way, unless the link is cut or the receiver is dead.
func (w *world) send(i int, s election.Envelope, maxTerm election.Term) {
	w.checkSend(i, s.Message)
	if r, ok := s.Message.(election.VoteRequest); ok && r.Term > maxTerm {
		w.beyond = true
	}
	to := indexOf(s.To)
	if w.agents[to].alive && !w.agents[i].cut && !w.agents[to].cut {
		if w.agents[to].paused {
			w.supersede(i, to, s.Message)
		}
		w.network = append(w.network, flight{from: i, to: to, message: s.Message})
	}
}

// poll reads the leading agent's leadership, as its programs do.
func (w *world) poll(i int) {
	a := &w.agents[i]
	c := a.process.contest
	if k := c.Leader(); c.Role() == contest.Leader && a.clock < k.Until {
		w.acts(i, act{holder: k.Holder, term: k.Term, until: k.Until})
	}
}

func (f flight) String() string {
	return fmt.Sprintf("%s -> %s %s", peerOf(f.from), peerOf(f.to), messages.Describe(f.message))
}

// supersede drops a message that waits for a paused agent when the same peer sends another one of
// its kind, so that the number of messages stays bounded.
func (w *world) supersede(from, to int, m election.Message) {
	w.network = slices.DeleteFunc(w.network, func(f flight) bool {
		return f.from == from && f.to == to && !f.late && election.Kind(f.message) == election.Kind(m)
	})
}

// Violation is a rule that did not hold in a state, with the shortest path to that state.
type Violation struct {
	Rule string
	What string
	Path []string // what happened, from the root on
}

func (v *Violation) Error() string { return v.Rule + ": " + v.What }

func (w *world) fail(rule, format string, args ...any) {
	if w.fault == nil {
		w.fault = &Violation{Rule: rule, What: fmt.Sprintf(format, args...)}
		w.note("VIOLATION of %s", w.fault)
	}
}

// announced checks that the term of each new leadership is above all earlier ones, and so
// belongs to one holder.
func (w *world) announced(i int, x election.Announcement) {
	self := w.holder(i)
	if x.Election != election.Default || x.Leader != self || x.Event != election.Leading && x.Event != election.NewTerm {
		return
	}
	w.poll(i) // before the check of the term, since an overlap explains more
	if x.Term <= w.last {
		w.fail("terms rise", "%s leads in term %d, after %s in term %d", self, x.Term, w.leader, w.last)
	}
	w.last, w.leader = x.Term, self
	w.agents[i].leading = true
}

// acts records that a program leads until its deadline, and checks that no program of another
// holder does.
func (w *world) acts(i int, x act) {
	a := &w.agents[i]
	before := a.acts
	a.acts = slices.DeleteFunc(slices.Clone(a.acts), func(y act) bool { return y.holder == x.holder })
	for _, y := range before {
		if y.holder == x.holder {
			x.until = max(x.until, y.until)
		}
	}
	a.acts = append(a.acts, x)
	a.sweep()
	for j := range w.agents {
		b := &w.agents[j]
		for _, y := range b.acts {
			if y.holder != x.holder && b.clock < y.until {
				w.fail("one holder in its lease", "%s leads in term %d while %s has %v left of term %d",
					x.holder, x.term, y.holder, timeOf(y.until-b.clock), y.term)
			}
		}
	}
}

// checkSend checks that a grant is on disk before it is sent.
func (w *world) checkSend(i int, m election.Message) {
	g, ok := m.(election.VoteGrant)
	if !ok {
		return
	}
	if on := w.agents[i].disk.Grants[g.Election]; on.Term != g.Term || on.Holder != g.Holder {
		w.fail("durable before sent", "%s grants term %d to %s, its disk holds %d to %s", peerOf(i), g.Term, g.Holder, on.Term, on.Holder)
	}
}

// checkDisk checks that a write takes no promise back.
func (w *world) checkDisk(i int, before, after *election.State) {
	for name, was := range before.Grants {
		is := after.Grants[name]
		if is.Term < was.Term || is.Term == was.Term && (is.Holder != was.Holder || was.Released && !is.Released) {
			w.fail("promises on disk", "%s: %s goes from %+v to %+v", peerOf(i), name, was, is)
		}
	}
}
