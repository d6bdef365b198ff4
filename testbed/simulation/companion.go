package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// In half of the worlds hosts have a companion: a process that acts while its host's agent leads. A run for
// a leadership sets something up, such as an address. The setup stays when the run has ended, and when the
// companion dies. For the checkers the setup acts like a program: until the last deadline that the companion
// was sent, or until the run for the end of the leadership undoes it.

type companion struct {
	number int // of the process; 0: it does not run
	acts   []bool
	k      *actors.Candidacy
	life   uint32 // of the agent to which it is connected
}

// run is what a host's companion does in one election, and what it has left there.
type run struct {
	actor // as the companion was last notified
	log   *contestLog
	turn  int   // counts the companion's runs: a later run cancels what an earlier one has still to do
	busy  int64 // when its command has started; before that, the run can't be killed
	leads bool  // the leadership of which it was notified last has not been revoked
}

func (a *agent) besides() (names []string) {
	for e, acts := range a.companion.acts {
		if acts {
			names = append(names, string(a.w.plan.elections[e]))
		}
	}
	return names
}

// needs returns for which elections the host needs its companion. In some worlds a host is a candidate only
// while the companion that is to act in the election is connected.
func (a *agent) needs() actors.Needs {
	return actors.Needs{Hooked: func(name election.Name) bool {
		e := slices.Index(a.w.plan.elections, name)
		return a.w.plan.needed && e >= 0 && a.companion.acts[e]
	}}
}

// accompany starts the host's companion, if the companion has something to do, and connects it to the agent.
func (a *agent) accompany() {
	c := &a.companion
	switch {
	case len(a.besides()) == 0:
		return
	case a.frozen > 0:
		a.w.later(a.w.plan.timing.Heartbeat, a.accompany)
		return
	}
	if c.number == 0 {
		a.w.programs++
		c.number = a.w.programs
		a.cleanUp()
	}
	a.call(a.join)
}

// join connects the companion. It lists the leaderships that the companion was sent and may still act for.
func (a *agent) join() {
	c, names := &a.companion, a.besides()
	if c.number == 0 || c.k != nil && c.life == a.life || len(names) == 0 {
		return
	}
	local, holds := a.clock.at(a.w.Now), map[string]uint64{}
	for e := range a.runs {
		if r := &a.runs[e]; r.leads && r.holder == a.holder() && r.number == c.number && local < r.until {
			holds[string(a.w.plan.elections[e])] = uint64(r.term)
		}
	}
	k, err := a.registry.Stand(local, actors.Request{PID: int32(c.number), Program: identity(c.number, 0),
		Companion: &api.Companion{Elections: names, Holds: holds}})
	if err != nil { // the registry still has its former process as connected
		a.call(a.join)
		return
	}
	c.k, c.life = k, a.life
}

// cleanUp lets a new companion undo what the former one left, unless it is sent something first.
func (a *agent) cleanUp() {
	for e := range a.runs {
		turn := a.runs[e].turn
		a.inRun(e, turn, around(a.rng, a.w.plan.timing.Heartbeat), (*run).undo)
	}
}

func (a *agent) inRun(e, turn int, after time.Duration, do func(*run)) {
	number, epoch := a.companion.number, a.clock.epoch
	a.w.after(after, func() {
		switch r := &a.runs[e]; {
		case epoch != a.clock.epoch || number != a.companion.number || r.turn != turn:
		case a.frozen > 0:
			a.inRun(e, turn, a.w.plan.timing.Heartbeat, do)
		default:
			do(r)
		}
	})
}

func (a *agent) readBeside(line api.CampaignEvent) {
	l := a.w.log(a, election.Name(line.Election))
	if l == nil || l.name == election.RosterElection {
		return
	}
	e, r := l.index, &a.runs[l.index]
	now := actor{kind: beside, host: a, epoch: a.clock.epoch, holder: a.holder(), term: election.Term(line.Term),
		until: election.Instant(line.ValidUntilBoottimeNS), number: a.companion.number}
	switch line.Type {
	case api.CampaignElected:
		a.w.tell(l, &now)
		r.turn++
		r.log, r.actor, r.leads = l, now, true
		takes := around(a.rng, a.w.plan.timing.Heartbeat/20)
		if chance(a.rng, 0.1) { // its exec hangs
			takes += around(a.rng, a.w.plan.timing.Lease)
		}
		r.busy = a.w.Now + int64(takes)
		a.inRun(e, r.turn, takes, (*run).sets)
	case api.CampaignRenewed:
		a.w.tell(l, &now)
		now.until = max(now.until, r.until)
		r.log, r.actor = l, now
		if x := l.find(beside, now.holder); x != nil && x.acting(a.w.Now) {
			a.w.acts(l, now)
		}
	case api.CampaignRevoked:
		r.turn++
		r.leads = false
		if !chance(a.rng, a.w.plan.heeds) {
			return
		}
		takes := around(a.rng, a.w.plan.timing.Heartbeat/2) + max(0, time.Duration(r.busy-a.w.Now))
		a.inRun(e, r.turn, takes, func(r *run) {
			r.undo()
			if k := a.companion.k; k != nil {
				a.call(func() { _ = a.registry.Receipt(k.ID(), l.name, now.term, "", anybody) })
			}
		})
	}
}

// sets lets a run for a leadership set up its things, unless the deadline has passed: a run
// starts its command before the deadline, or never.
func (r *run) sets() {
	if r.host.clock.at(r.host.w.Now) < r.until {
		r.host.w.stats.Companions++
		r.host.w.acts(r.log, r.actor)
	}
}

func (r *run) undo() {
	if r.log != nil {
		r.host.w.stopActing(r.log.find(beside, r.holder))
	}
}

// endCompanion kills the host's companion and its guard. All their processes end; what they have
// set up stays.
func (a *agent) endCompanion() {
	c := &a.companion
	if c.number == 0 {
		return
	}
	a.w.note(a, "its COMPANION dies")
	k := c.k
	c.number, c.k = 0, nil
	for e := range a.runs {
		a.runs[e].turn++
		a.runs[e].leads = false
	}
	if k != nil && c.life == a.life {
		a.call(func() { a.registry.End(k.ID()) })
	}
}

// killCompanion kills the companion, at times with its agent. Its keeper starts it again.
func (w *world) killCompanion(r *rand.Rand) {
	a, together, lasts, lost := w.victim(r), chance(r, 0.5), w.lasts(r), chance(r, 0.1)
	down := pick(r, 0, around(r, w.plan.timing.Heartbeat/4), lasts)
	a.endCompanion()
	if together && a.alive {
		w.stopFor(a, true, lost, lasts)
	}
	w.later(down, a.accompany)
}

// reloadHooks plays an operator who adds or removes a hook. A companion without a hook may end.
func (w *world) reloadHooks(r *rand.Rand) {
	a, ends := w.victim(r), chance(r, 0.3)
	e, name := w.contestOf(r)
	c := &a.companion
	c.acts[e] = !c.acts[e]
	w.note(a, "its companion is to act in %s: %t", name, c.acts[e])
	if w.plan.needed {
		a.configure()
	}
	names, k := a.besides(), c.k
	switch {
	case c.number == 0:
		a.accompany()
	case len(names) == 0 && ends:
		a.endCompanion()
	case k != nil: // reports are sent one after another; each has what is true when it is sent
		a.call(func() {
			_ = a.registry.Report(a.clock.at(w.Now), k.ID(), api.Companion{Elections: a.besides()}, anybody)
		})
	default:
		a.call(a.join)
	}
}
