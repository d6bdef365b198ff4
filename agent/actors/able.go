package actors

import (
	"slices"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

const (
	// ReasonNoCompanion is why a host is not a candidate where a hook or a check needs its companion.
	ReasonNoCompanion election.Reason = "doyen act, which runs this host's hooks and checks, is not connected"
	// reasonUnchecked is why a host is not a candidate before the first outcome of a check.
	reasonUnchecked = "no check has succeeded yet"
)

// Needs is for what a host needs a companion, by the configuration.
type Needs struct {
	// Hooked reports whether a hook acts in an election; nil: none acts in any.
	Hooked func(election.Name) bool
	// Checked are the elections that have a check, api.EveryElection for that of the host.
	Checked []election.Name
	// Named are the elections that have a hook or a check, api.EveryElection for those of all others.
	Named []election.Name
}

// lacks reports whether the companion that an election needs is missing.
func (k *Companions) lacks(name election.Name) bool {
	if k.cfg.Needs.Hooked != nil && k.cfg.Needs.Hooked(name) && k.of(name) == nil {
		return true
	}
	return slices.ContainsFunc(k.cfg.Needs.Checked, func(of election.Name) bool {
		if of != name && of != api.EveryElection {
			return false
		}
		_, runs := k.check(of)
		return !runs
	})
}

// check returns what the companions report of the check of an election, and whether one runs it.
func (k *Companions) check(of election.Name) (api.Check, bool) {
	for _, c := range k.connected {
		if outcome, ok := c.companion.Checks[string(of)]; ok {
			return outcome, true
		}
	}
	return api.Check{}, false
}

// failing returns why a check keeps this host from leading; empty: none does.
func (k *Companions) failing(name election.Name) string {
	for _, of := range []election.Name{api.EveryElection, name} {
		if c, runs := k.check(of); runs && !c.Able {
			return c.Reason
		}
	}
	return ""
}

// Unable returns why this host may not be a candidate in an election; empty: it may.
func (k *Companions) Unable(name election.Name) string {
	if why := k.failing(name); why != "" {
		return why
	}
	if k.lacks(name) {
		return string(ReasonNoCompanion)
	}
	for _, of := range []election.Name{api.EveryElection, name} {
		if c, runs := k.check(of); runs && !c.Able {
			return reasonUnchecked
		}
	}
	return ""
}

// Lacks reports whether a hook or a check of this host needs a companion that is not there.
func (k *Companions) Lacks() bool { return slices.ContainsFunc(k.cfg.Needs.Named, k.lacks) }

// Verdicts returns the checks that keep this host from being a candidate, and why, by election;
// api.EveryElection stands for all of them.
func (k *Companions) Verdicts() map[election.Name]string {
	all := map[election.Name]string{}
	for _, beside := range k.connected {
		for of, c := range beside.companion.Checks {
			if !c.Able {
				if all[election.Name(of)] = c.Reason; c.Reason == "" {
					all[election.Name(of)] = reasonUnchecked
				}
			}
		}
	}
	return all
}

// Failed returns the hooks that failed, and why, by election.
func (k *Companions) Failed() map[election.Name]string {
	all := map[election.Name]string{}
	for _, beside := range k.connected {
		for of, why := range beside.companion.Failed {
			all[election.Name(of)] = why
		}
	}
	return all
}
