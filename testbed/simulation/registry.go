package simulation

import (
	"fmt"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// The product's own registry knows what acts on a host, and decides when a term may be released.
// This file plays the programs, and does what an agent's loop does between elector and registry.

// process is a program of a host, in one election.
type process struct {
	number int               // no two processes have the same number
	id     string            // of its campaign
	k      *actors.Candidacy // nil: it is not connected
	meta   string            // what it reports about itself; each connection has another one
}

// setUp makes the registry of an agent's new process. The registry goes on from what is on record.
func (a *agent) setUp(past *election.Past) {
	c := actors.Config{Settings: actors.Settings{Priority: a.priority, Needs: a.needs()}, Step: a.w.plan.timing.Heartbeat / 2, StepOfMany: a.w.plan.timing.Heartbeat,
		NewID: func() string { a.w.programs++; return fmt.Sprintf("c%d", a.w.programs) },
		Record: func(name election.Name, p record.Program) {
			a.onRecord(name, func(row *record.Actors) { row.Program = p })
		},
		RecordCompanion: func(name election.Name, p record.Program) {
			a.onRecord(name, func(row *record.Actors) { row.Companion = p })
		}}
	if past != nil {
		for _, row := range past.Rows {
			if on := a.recordedActors[row.Election]; row.Election != election.RosterElection {
				c.Past = append(c.Past, actors.Past{Authority: row, Program: on.Program, Companion: on.Companion})
			}
		}
	}
	a.registry, a.queue, a.turning = actors.New(c), nil, false
}

func (a *agent) onRecord(name election.Name, change func(*record.Actors)) {
	if a.past != nil && (!a.dying || a.w.options.careless != recordsLate) {
		row := a.recordedActors[name]
		change(&row)
		a.recordedActors[name] = row
	}
}

// turn does what a loop does after each step and call. It notifies programs and companion, and
// gives the elector what the registry has for it.
func (a *agent) turn() {
	a.hear()
	a.queue = append(a.queue, a.registry.Take()...)
	if a.turning {
		return
	}
	a.turning = true
	if spoil := a.w.options.spoil; spoil != nil {
		spoil(a)
	}
	life := a.life
	for len(a.queue) > 0 && a.alive && a.life == life && a.w.violation == nil {
		in := a.queue[0]
		a.queue = a.queue[1:]
		a.w.step(a, in)
	}
	if a.life == life {
		a.turning = false
	}
}

// call lets the agent's loop do something a little later, in this life, once the agent is not paused.
func (a *agent) call(do func()) {
	a.w.after(around(a.rng, a.w.plan.timing.Heartbeat/4), a.inLife(func() {
		switch {
		case !a.alive:
		case a.paused > 0:
			a.call(do)
		default:
			do()
			a.turn()
		}
	}))
}

// prolong notifies programs and companion of renewed leases.
func (a *agent) prolong() {
	for _, c := range a.contests {
		if c.State == elector.Leading && c.Leader == a.holder() {
			a.registry.Prolong(c.Election, c.Term, c.ValidUntil)
		}
	}
	a.hear()
}

// lead notifies those that are to act, programs and companion, that the agent leads.
func (a *agent) lead(local election.Instant, x election.Announcement) {
	c := a.leads(x.Election)
	switch {
	case c == nil || c.Term != x.Term || a.w.log(a, x.Election) == nil:
	case x.Event == election.NewTerm:
		a.registry.Rise(x.Election, x.Term, c.ValidUntil, nil)
	default:
		a.registry.Lead(local, x.Election, x.Term, c.ValidUntil, nil, nil)
	}
}

// stands makes a program a candidate, in the place of the former one.
func (a *agent) stands(e int) {
	s, p := &a.stand[e], &a.programs[e]
	before := p.k
	a.w.programs++
	q := actors.Request{Election: a.w.plan.elections[e], PID: int32(a.w.programs), Program: identity(a.w.programs, a.life), Meta: a.meta()}
	if s.stated {
		priority := s.priority
		q.Priority = &priority
	}
	k, err := a.registry.Stand(a.clock.at(a.w.Now), q)
	if err != nil {
		a.w.fail("campaign", "a program of %s can't be a candidate in %s: %v", a.peer, q.Election, err)
		return
	}
	if before != nil {
		a.leaves(e)
	}
	*p = process{number: int(q.PID), id: k.ID(), k: k, meta: q.Meta}
	a.turn()
}

// meta returns a meta that no program had before.
func (a *agent) meta() string {
	a.w.metas++
	return fmt.Sprintf("%s-%d", a.name, a.w.metas)
}

func identity(number int, life uint32) record.Program {
	return record.Program{PID: int32(number), Started: 1, Sockets: [record.MaxSockets]uint64{uint64(life)}}
}

// leaves closes a program's connection. The program acts until its deadline, or soon ends, with proof.
func (a *agent) leaves(e int) {
	p, l := a.programs[e], a.w.logsOf(a)[e]
	a.programs[e].k = nil
	if p.k == nil {
		return
	}
	a.registry.End(p.k.ID())
	if chance(a.rng, a.w.plan.heeds) {
		a.stopSoon(l, p, func() { a.registry.Gone(p.k.ID()) })
	}
}

// stopSoon makes a program stop and report that a little later, unless its host is down or frozen.
func (a *agent) stopSoon(l *contestLog, p process, report func()) {
	self, epoch := a.holder(), a.clock.epoch
	a.w.after(around(a.rng, a.w.plan.timing.Heartbeat/2), func() {
		if epoch != a.clock.epoch || a.frozen > 0 {
			return // the program is gone, or goes on acting when its host thaws
		}
		if x := l.find(program, self); x != nil && x.number == p.number {
			a.w.stopActing(x)
		}
		a.call(report)
	})
}

// hear lets the host's programs and its companion read what they were sent.
func (a *agent) hear() {
	for e := range a.programs {
		if k := a.programs[e].k; k != nil {
			lines, _ := k.Take()
			for _, line := range lines {
				a.read(e, line)
			}
		}
	}
	if k := a.companion.k; k != nil {
		lines, _ := k.Take()
		for _, line := range lines {
			a.readBeside(line)
		}
	}
}

func (a *agent) read(e int, line api.CampaignEvent) {
	p, l := a.programs[e], a.w.logsOf(a)[e]
	now := actor{kind: program, host: a, epoch: a.clock.epoch, holder: a.holder(), term: election.Term(line.Term),
		until: election.Instant(line.ValidUntilBoottimeNS), number: p.number}
	x := l.find(program, now.holder)
	acts := x != nil && x.acting(a.w.Now)
	switch line.Type {
	case api.CampaignElected:
		if acts && a.w.plan.quorum {
			a.w.fail("K4d", "%s lets a program act in term %d of %s while the one of term %d acts on", a.peer, now.term, l.name, x.term)
		}
		a.w.acts(l, now)
		a.w.tell(l, &now)
		a.w.startAdding(a, l, now.holder)
	case api.CampaignRenewed:
		if acts && x.number == p.number {
			now.until = max(now.until, x.until)
		}
		a.w.acts(l, now)
		a.w.tell(l, &now)
	case api.CampaignRevoked:
		if chance(a.rng, a.w.plan.heeds) {
			a.stopSoon(l, p, func() { _ = a.registry.Receipt(p.k.ID(), p.k.Election(), now.term, "", anybody) })
		}
	}
}

func anybody(uint32) bool { return true }

// tell records that a program or companion was notified of a term, and checks that no other one was (K4d).
func (w *world) tell(l *contestLog, x *actor) {
	if !w.plan.lives || !w.plan.quorum {
		return
	}
	told := l.told[x.kind]
	if other, known := told[x.term]; known && other != x.number {
		w.fail("K4d", "two of %s were notified of term %d of %s", x.host.peer, x.term, l.name)
	}
	told[x.term] = x.number
}

// goOn decides for each program of the host: it resumes after a while, or has ended meanwhile, or
// never comes back and stops by the deadline that it knows.
func (a *agent) goOn() {
	logs, absent := a.w.logsOf(a), map[string]election.Instant{}
	expected, until := a.registry.Absent()
	for i, p := range expected {
		absent[p.Campaign] = until[i]
	}
	for e := range a.programs {
		p, l := a.programs[e], logs[e]
		by, expected := absent[p.id]
		x := l.find(program, a.holder())
		again := func() { a.candidateAgain(e) }
		switch {
		case !expected:
			again()
		case x == nil || !x.acting(a.w.Now) || !a.w.deaths && chance(a.rng, 0.2): // the program has ended, with proof
			a.w.stopActing(x)
			a.call(func() { a.registry.Dead(p.id); again() })
		case a.w.deaths || chance(a.rng, 0.7):
			a.call(func() { a.resumes(e, p) })
		default:
			a.w.after(time.Duration(a.clock.when(by)-a.w.Now), func() { a.call(again) })
		}
	}
}

// candidateAgain adds a program if the host has no candidate in the election and should have one.
func (a *agent) candidateAgain(e int) {
	if a.stand[e].stands && a.programs[e].k == nil {
		a.stands(e)
	}
}

// resumes gives a program of the former life its candidacy back.
func (a *agent) resumes(e int, p process) {
	l := a.w.logsOf(a)[e]
	x := l.find(program, a.holder())
	if x == nil || !x.acting(a.w.Now) || a.programs[e].k != nil {
		a.candidateAgain(e)
		return
	}
	meta := a.meta()
	k, err := a.registry.Resume(a.clock.at(a.w.Now), actors.Resumption{ID: p.id, Term: x.term, Program: identity(p.number, a.life), Meta: meta,
		May: func(election.Name) error { return nil }, Held: func([]uint64) []uint64 { return nil }})
	if err != nil {
		a.call(func() { a.candidateAgain(e) })
		return
	}
	a.programs[e] = process{p.number, p.id, k, meta}
	if a.leads(l.name) != nil {
		a.w.stats.Resumed++
	}
}

// announced lets programs and companion begin to act when their agent leads. It checks G2: the
// term of each leadership is above all earlier ones.
func (w *world) announced(a *agent, local election.Instant, x election.Announcement) {
	l := w.log(a, x.Election)
	if l == nil {
		w.checkShort(a, x)
		return
	}
	self := a.holder()
	w.observe(a, x)
	w.announcing(a, x)
	w.heal.changed = true
	if x.Leader != self || x.Event != election.Leading && x.Event != election.NewTerm {
		return
	}
	a.lead(local, x)
	l.highest = max(l.highest, x.Term)
	if w.plan.lives && x.Term == l.last && self == l.holder {
		return // the next life continues this leadership
	}
	w.checkTerm(a, l, x, self)
	if x.Event == election.NewTerm {
		w.stats.Overtaken++
		return
	}
	w.stats.Leaderships++
	w.scribe.elected(a, x)
	if n := w.options.blind; n > 0 && w.stats.Leaderships > n && w.stats.Cut > 0 {
		w.fail("blind", "%s leads %s in term %d", self, x.Election, x.Term)
	}
	if x.Election == election.RosterElection {
		return
	}
	c := a.status(x.Election)
	if w.plan.quorum && (c == nil || c.Leader != (election.Holder{}) && (c.Leader != self || local >= c.ValidUntil)) {
		w.fail("H5", "%s announces that it leads %s in term %d, but its status does not say so", a.peer, x.Election, x.Term)
	}
}

// checkShort checks G2 in a short election. Agents may have forgotten the election since it was
// led last.
func (w *world) checkShort(a *agent, x election.Announcement) {
	if x.Event != election.Leading || !w.plan.quorum || a.own != nil {
		return
	}
	w.stats.Short++
	if last := w.shorts[x.Election]; x.Term <= last {
		w.fail("G2", "%s leads %s in term %d, after term %d", a.peer, x.Election, x.Term, last)
	}
	w.shorts[x.Election] = x.Term
}

func (w *world) checkTerm(a *agent, l *contestLog, x election.Announcement, self election.Holder) {
	if !w.plan.quorum {
		return
	}
	if x.Term <= l.last {
		w.fail("G2", "%s leads %s in term %d, after %s in term %d", self, x.Election, x.Term, l.holder, l.last)
	}
	if h, ok := l.owners[x.Term]; ok && h != self {
		w.fail("G2", "%s leads %s in term %d, which %s had", self, x.Election, x.Term, h)
	}
	if before := w.find(l.holder.Peer); before != nil && before != a && before.alive && before.boot == l.holder.Lineage &&
		(before.paused > 0 || !w.joined(a, before)) {
		w.stats.Cut++
	}
	l.last, l.holder, l.owners[x.Term] = x.Term, self, self
}

// withdrawn asks the host's program and companion to stop. Each stops and gives its receipt, or goes on
// acting until the last deadline that it knows.
func (w *world) withdrawn(a *agent, x election.Withdrawal) {
	w.heal.withdrawn(w, x)
	switch x.Reason {
	case election.ReasonDisk:
		w.stats.Stuck++
	case election.ReasonLate:
		w.stats.Late++
	}
	if l := w.log(a, x.Election); l != nil {
		l.extend(a, x.Term, x.StopBy)
	}
	a.registry.Withdraw(x, nil)
}
