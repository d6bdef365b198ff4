package campaign

import (
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// unhealthyAtStart leaves out what would end a leadership of an earlier life: its check has not run
// yet in this one.
func unhealthyAtStart(c Config) map[election.Name]string {
	unhealthy := maps.Clone(c.Unhealthy)
	for _, p := range c.Past {
		if p.Term != 0 && p.Ending.Reason == "" {
			delete(unhealthy, p.Election)
			delete(unhealthy, "")
		}
	}
	if unhealthy == nil {
		unhealthy = map[election.Name]string{}
	}
	return unhealthy
}

// Judge records why this host may not be a candidate in an election, or for the empty name in any;
// empty: it may. What it leads there is handed over.
func (r *Registry) Judge(name election.Name, unhealthy string) {
	if r.unhealthy[name] == unhealthy {
		return
	}
	r.unhealthy[name] = unhealthy
	if unhealthy == "" {
		delete(r.unhealthy, name)
	}
	for _, of := range slices.Sorted(maps.Keys(r.races)) {
		c := r.races[of]
		if name != "" && name != of {
			continue
		}
		if why := r.Unhealthy(of); why != "" && c.term != 0 && c.why == "" {
			r.dismiss(c, election.Reason(why))
		}
		r.settle(c)
		r.tidy(c)
	}
}

// Unhealthy returns why this host may not be a candidate in an election; empty: it may.
func (r *Registry) Unhealthy(name election.Name) string {
	if why := r.unhealthy[""]; why != "" {
		return why
	}
	return r.unhealthy[name]
}

// Given returns why the program that leads gives up the lead, if it has said that.
func (r *Registry) Given(name election.Name) election.Reason {
	if c := r.races[name]; c != nil {
		return c.given
	}
	return ""
}

// Verdicts returns why this host may not be a candidate, by election, the empty name standing for
// all. The caller does not change it.
func (r *Registry) Verdicts() map[election.Name]string { return maps.Clone(r.unhealthy) }

// best returns the best candidacy, nil if there is none or the host may not be a candidate.
func (r *Registry) best(c *race) *Candidacy {
	if len(c.candidates) == 0 || r.Unhealthy(c.name) != "" {
		return nil
	}
	return c.candidates[0]
}
