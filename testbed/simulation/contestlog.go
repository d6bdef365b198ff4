package simulation

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// contestLog is what the checkers know of one election: everything, in true time.
type contestLog struct {
	index   int
	name    election.Name
	last    election.Term // of the newest leadership
	highest election.Term // the highest in which any agent led
	holder  election.Holder
	owners  map[election.Term]election.Holder
	ends    map[leased]leaseEnd
	grants  map[vote]election.Holder
	told    [claimer]map[election.Term]int // by kind and term: the number of the program or companion that was notified that it leads
	actors  []actor
}

// leased names a lease. A term can have two holders if an older copy of a disk was restored.
type leased struct {
	term   election.Term
	holder election.Holder
}

// leaseEnd is the latest end that the holder of a lease ever showed for it.
type leaseEnd struct {
	host  *agent
	epoch int
	until election.Instant
}

type vote struct {
	voter election.PeerID
	term  election.Term
}

// actorKind is the sense in which an actor leads.
type actorKind uint8

const (
	program actorKind = iota // a program acts, until the last deadline of which it was notified
	beside                   // what a companion has set up is there
	claimer                  // an agent's status shows that it leads
)

func (k actorKind) String() string { return [...]string{"a program", "a companion", "an agent"}[k] }

// actor is an agent, a program or a companion's setup. It leads until its deadline on its host's clock,
// whether the agent is alive, paused or dead.
type actor struct {
	kind    actorKind
	host    *agent
	epoch   int
	holder  election.Holder
	term    election.Term
	until   election.Instant
	stopped bool
	number  int // of the program or companion
	bar     int // its bar in the history
}

func newContestLog(index int, name election.Name) *contestLog {
	return &contestLog{index: index, name: name, owners: map[election.Term]election.Holder{}, ends: map[leased]leaseEnd{},
		grants: map[vote]election.Holder{}, told: [claimer]map[election.Term]int{{}, {}}}
}

// acting reports whether the actor leads at the true time t.
func (x *actor) acting(t int64) bool {
	return !x.stopped && x.epoch == x.host.clock.epoch && x.host.clock.at(t) < x.until
}

// log returns the log of the election in the agent's cluster; nil for a short election.
func (w *world) log(a *agent, name election.Name) *contestLog {
	logs := w.logsOf(a)
	if name == election.RosterElection {
		return logs[len(logs)-1]
	}
	if i := slices.Index(w.plan.elections, name); i >= 0 {
		return logs[i]
	}
	return nil
}

func (l *contestLog) find(kind actorKind, h election.Holder) *actor {
	for i := range l.actors {
		if l.actors[i].kind == kind && l.actors[i].holder == h {
			return &l.actors[i]
		}
	}
	return nil
}

// actsFor returns a program or a companion's setup that acts for that holder; nil: neither does.
func (w *world) actsFor(l *contestLog, h election.Holder) *actor {
	for i := range l.actors {
		if x := &l.actors[i]; x.kind != claimer && x.holder == h && x.acting(w.Now) {
			return x
		}
	}
	return nil
}

// acts records that an actor leads until its deadline, and checks G1: no other holder leads.
func (w *world) acts(l *contestLog, now actor) {
	x := l.find(now.kind, now.holder)
	if x != nil && x.acting(w.Now) {
		x.term, x.until = now.term, now.until
		w.leadsOn(l, x)
		w.checkAlone(l, x)
		return
	}
	if x == nil {
		l.actors = slices.DeleteFunc(l.actors, func(x actor) bool {
			return !x.acting(w.Now) && (x.stopped || !w.mayLead(x))
		})
		l.actors = append(l.actors, now)
		x = &l.actors[len(l.actors)-1]
	}
	*x = now
	w.leads(l, x)
	w.pollOthers(l, now.host)
	w.checkAlone(l, l.find(now.kind, now.holder))
}

// mayLead reports whether the process that led still runs. If so, its lease may have been
// renewed since it was polled last.
func (w *world) mayLead(x actor) bool {
	return x.kind == claimer && x.host.alive && x.host.boot == x.holder.Lineage
}

// pollOthers polls every other agent that led: its lease may have been renewed since it was
// polled last.
func (w *world) pollOthers(l *contestLog, a *agent) {
	if w.polling {
		return
	}
	w.polling = true
	for i := 0; i < len(l.actors); i++ {
		if x := &l.actors[i]; x.kind == claimer && !x.stopped && x.host != a && x.host.alive {
			w.poll(x.host)
		}
	}
	w.polling = false
}

// checkAlone checks G1: no holder other than that of x leads.
func (w *world) checkAlone(l *contestLog, x *actor) {
	if !w.plan.quorum || !x.acting(w.Now) {
		return
	}
	for i := range l.actors {
		y := &l.actors[i]
		if y.holder == x.holder || !y.acting(w.Now) {
			continue
		}
		newer, older := x, y
		if y.term > x.term {
			newer, older = y, x
		}
		w.fail("G1", "%s leads %s in term %d while %s leads on in term %d: %s has %v left", newer.holder, l.name, newer.term,
			older.holder, older.term, older.host.peer, older.until.Sub(older.host.clock.at(w.Now)))
	}
}

// endStatusClaims ends the leaderships that a stopped agent's status showed: nobody can read
// the status any more.
func (w *world) endStatusClaims(a *agent, logs []*contestLog) {
	for _, l := range logs {
		w.stopActing(l.find(claimer, a.holder()))
	}
}

// endUnlisted ends the leaderships in elections that the agent's status no longer shows: the step
// that withdraws and releases a leadership may also drop its election.
func (w *world) endUnlisted(a *agent) {
	for _, l := range w.logsOf(a) {
		if l.name != election.RosterElection && a.status(l.name) == nil {
			w.stopActing(l.find(claimer, a.holder()))
		}
	}
}

// stopActing records that an actor, if there is one, leads no more.
func (w *world) stopActing(x *actor) {
	if x != nil && !x.stopped {
		x.stopped = true
		w.leadsNoMore(x)
	}
}
