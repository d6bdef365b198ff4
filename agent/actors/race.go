package actors

import (
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// race is one election as the host takes part in it.
//
// Invariants: term is 0 exactly while the host does not lead. While term is 0, acting is nil and until is 0.
// While the host leads and does not step down, the elector has the priority and the meta of acting.
type race struct {
	name       election.Name
	candidates []*Candidacy // the best first
	asked      bool         // the elector has the host as a candidate
	priority   int          // the priority that the elector has for the host
	meta       string       // the meta that the elector has for the host
	last       bool         // the host is a candidate only where no other host can lead (Companions.LastResort)

	term   election.Term
	acting *Candidacy       // the candidacy that acts; it may have ended in the meantime
	until  election.Instant // the newest deadline sent to the program
	lease  election.Instant // until when the host leads, as far as this registry knows
	deed   deed             // what a companion may still do
	change *api.Change      // the start of the present term, as watches show it
	why    election.Reason  // why this host steps down; empty: it does not step down
	given  election.Reason  // the reason that the program or companion gave for giving up; empty: none
	idle   election.Term    // a term under which nothing acts: the elector releases it in the step in which the host steps down

	due election.Instant // when a better candidate takes over, if the race is in Registry.rivals
}

// race returns the race of an election, and makes it if there is none; tidy drops it.
func (r *Registry) race(name election.Name) *race {
	c := r.races[name]
	if c == nil {
		c = &race{name: name}
		r.races[name] = c
	}
	return c
}

// tidy drops a race if it has no candidates, the host does not lead it, and nothing acts in it.
func (r *Registry) tidy(c *race) {
	if len(c.candidates) == 0 && c.term == 0 && !c.asked && c.deed.term == 0 {
		delete(r.races, c.name)
	}
}

// offerBest gives the elector the best candidacy. While the host leads, the elector keeps the
// candidacy of the program that acts.
func (r *Registry) offerBest(c *race) {
	asks := !c.asked || c.last != r.beside.LastResort(c.name)
	if c.term != 0 {
		if asks && c.asked && c.why == "" {
			r.campaign(c, c.priority, c.meta)
		}
		return
	}
	switch best := r.best(c); {
	case best != nil && (asks || c.priority != best.priority || c.meta != best.request.Meta):
		r.campaign(c, best.priority, best.request.Meta)
	case best == nil && c.asked:
		c.asked, c.priority, c.meta = false, 0, ""
		r.inputs = append(r.inputs, election.Withdraw{Election: c.name})
	}
}

func (r *Registry) campaign(c *race, priority int, meta string) {
	c.asked, c.priority, c.meta, c.last = true, priority, meta, r.beside.LastResort(c.name)
	r.inputs = append(r.inputs, election.Campaign{Election: c.name, Priority: c.priority, Meta: c.meta, LastResort: c.last})
}

// dismiss makes the elector step down. The host stays a candidate with the best candidacy that is left.
// If nothing acts any more, the elector releases the term in the same step, and no receipt follows.
func (r *Registry) dismiss(c *race, why election.Reason) {
	c.why = why
	c.asked, c.priority, c.meta, c.last = false, 0, "", false
	if best := r.best(c); best != nil && !r.beside.LastResort(c.name) && best.priority > 0 {
		c.asked, c.priority, c.meta = true, best.priority, best.request.Meta
	}
	if k := c.acting; c.deed.term == 0 && (k == nil || k.host || k.hasStopped) {
		c.idle = c.term
	}
	r.inputs = append(r.inputs, election.Withdraw{Election: c.name, Remaining: c.priority, Meta: c.meta, Stopped: c.idle})
}

// Lead records that the host leads the election, under a lease that ends at the given instant. It
// notifies the best candidate and the companion. change is the start of the leadership, as watches show it;
// word is the election's, nil if it has none.
func (r *Registry) Lead(now election.Instant, name election.Name, term election.Term, until election.Instant, change *api.Change, word *api.Word) {
	c := r.race(name)
	c.lease, c.change = until, change
	if c.term == term {
		return // an earlier life has notified a program of this term: nobody else may hear of it
	}
	if c.term == 0 {
		r.led++
	}
	c.term, c.acting, c.until = term, nil, 0
	k := r.best(c)
	if k == nil || k.priority <= 0 {
		r.dismiss(c, election.ReasonWithdrawn) // the candidacy ended while the host was elected
		return
	}
	c.acting, c.until = k, until
	r.tell(k, term)
	if !k.host {
		k.before, k.newest = k.newest > 0, term
		r.Counters.Elected.Add(1)
		r.sayUntil(k, api.CampaignElected, term, until, word)
	}
	r.beside.lead(c)
	r.considerRival(now, c)
}

// Rise records that the host goes on leading in a higher term, and notifies the program.
func (r *Registry) Rise(name election.Name, term election.Term, until election.Instant, change *api.Change) {
	c := r.races[name]
	if c == nil || c.term == 0 || term <= c.term {
		return
	}
	c.term, c.lease, c.change = term, until, change
	r.renew(c, until)
	r.beside.lead(c)
}

// Prolong records that the lease under that term now ends at the given instant. It notifies the program if
// the lease has become longer by at least a step.
func (r *Registry) Prolong(name election.Name, term election.Term, until election.Instant) {
	c := r.races[name]
	if c == nil || c.term != term {
		return
	}
	c.lease = until
	if until.Sub(c.until) >= r.step() {
		r.renew(c, until)
	}
	r.beside.prolong(c, r.step())
}

func (r *Registry) step() time.Duration {
	if r.led > many {
		return r.cfg.StepOfMany
	}
	return r.cfg.Step
}

func (r *Registry) renew(c *race, until election.Instant) {
	if c.acting == nil || c.acting.host || c.why != "" {
		return
	}
	c.until = until
	if c.acting.absent {
		return // the program is notified when it resumes
	}
	c.acting.newest = c.term
	r.tell(c.acting, c.term)
	r.sayUntil(c.acting, api.CampaignRenewed, c.term, until, nil)
}

// tell puts a term on record just before the program is notified of it (K1).
func (r *Registry) tell(k *Candidacy, term election.Term) {
	if k.program.Told != term {
		k.program.Told = term
		r.record(k)
	}
}

// done puts on record that a program no longer acts under any term of which it was notified.
func (r *Registry) done(k *Candidacy) {
	k.program.Stopped = k.program.Told
	r.record(k)
}

func (r *Registry) record(k *Candidacy) {
	if r.cfg.Record != nil {
		r.cfg.Record(k.election, k.program)
	}
}

// sayUntil sends a program the deadline until which it may act.
func (r *Registry) sayUntil(k *Candidacy, kind string, term election.Term, until election.Instant, word *api.Word) {
	k.say(api.CampaignEvent{Type: kind, Term: uint64(term), ValidUntilBoottimeNS: int64(until), Authority: r.cfg.Authority, Word: word})
}

// considerRival starts the preempt delay if a candidate that waits is better than the program that acts.
// Another such candidate does not start the delay again.
func (r *Registry) considerRival(now election.Instant, c *race) {
	if _, known := r.rivals[c]; known || !r.cfg.Preempt || !c.outranked() {
		return
	}
	r.rivals[c] = struct{}{}
	c.due = now.Add(r.cfg.PreemptDelay)
}

// outranked reports whether a candidate is waiting whose priority is strictly higher than that of
// the program that acts.
func (c *race) outranked() bool {
	return c.acting != nil && len(c.candidates) > 0 && c.candidates[0].priority > c.acting.priority
}

func (r *Registry) dropRival(c *race) {
	if !c.outranked() {
		delete(r.rivals, c)
	}
}

// Advance does what is due: it stops waiting for programs whose deadline has passed, and lets
// better candidates take over.
func (r *Registry) Advance(now election.Instant) {
	r.expire(now)
	r.lapse(now)
	r.advanceCompanions(now)
	for c := range r.rivals {
		if now >= c.due && c.why == "" {
			delete(r.rivals, c)
			r.dismiss(c, election.ReasonPreempted)
		}
	}
}

// WakeAt is when Advance has something to do next.
func (r *Registry) WakeAt() election.Instant {
	wake := r.beside.wake()
	for _, w := range r.waits {
		wake = min(wake, w.stopBy)
	}
	for c := range r.rivals {
		if c.why == "" {
			wake = min(wake, c.due)
		}
	}
	for _, k := range r.absent {
		if k.absent {
			wake = min(wake, k.resumeBy)
		}
	}
	return wake
}
