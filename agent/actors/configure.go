package actors

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Settings are the parts of a Config that may change while a registry is in use.
type Settings struct {
	// Priority is the priority of a candidacy that states none.
	Priority int
	// Host makes the host itself a candidate in the default election, where it comes last among equal priorities.
	Host bool
	// With Preempt, a program of this host that has had a strictly higher priority for PreemptDelay replaces
	// the program that acts.
	Preempt      bool
	PreemptDelay time.Duration
	// Needs lists the elections that need a companion on this host. A leadership goes on without its companion
	// for companionGrace.
	Needs Needs
}

// Configure replaces the settings. A leadership ends if its candidacy now has priority 0, or is the host's own while
// Host is now false. It also ends if a check fails for which the new settings have no keep-last.
func (r *Registry) Configure(now election.Instant, s Settings) {
	if s.Host && !r.cfg.Host {
		r.standHost()
	}
	if !s.Host && r.cfg.Host {
		c := r.race(election.Default)
		c.candidates = slices.DeleteFunc(c.candidates, func(k *Candidacy) bool { return k.host })
		if c.acting != nil && c.acting.host && c.why == "" {
			r.dismiss(c, election.ReasonWithdrawn)
		}
	}
	clear(r.rivals) // the preempt delays start again
	r.cfg.Settings = s
	for _, name := range slices.Sorted(maps.Keys(r.races)) {
		c := r.races[name]
		for _, k := range c.candidates {
			r.prioritize(k)
		}
		slices.SortStableFunc(c.candidates, better)
		r.reprioritize(c)
		r.offerBest(c)
		r.considerRival(now, c)
		r.tidy(c)
	}
	r.review()
}

func (r *Registry) standHost() {
	c := r.race(election.Default)
	c.candidates = append(c.candidates, &Candidacy{election: election.Default, priority: r.cfg.Priority, host: true, order: math.MaxUint64})
	slices.SortStableFunc(c.candidates, better)
}

// prioritize gives a candidacy the agent's priority if it states none, and then applies its MaxPriority.
func (r *Registry) prioritize(k *Candidacy) {
	if !k.stated {
		k.priority = r.cfg.Priority
	}
	if k.request.MaxPriority != nil {
		k.priority = min(k.priority, *k.request.MaxPriority)
	}
	k.program.Priority = k.priority
}

// reprioritize gives the elector the priority and the meta of the candidacy that acts, if they have changed.
func (r *Registry) reprioritize(c *race) {
	k := c.acting
	switch {
	case k == nil || c.why != "" || k.priority == c.priority && k.request.Meta == c.meta:
	case k.priority <= 0:
		r.dismiss(c, election.ReasonWithdrawn)
	default:
		r.campaign(c, k.priority, k.request.Meta)
		if !k.host {
			r.record(k)
		}
	}
}
