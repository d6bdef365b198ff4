package actors

import (
	"cmp"
	"slices"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

const (
	// ReasonNoCompanion is why a host is not a candidate if a hook or a check lacks its companion.
	ReasonNoCompanion election.Reason = "doyen act, which runs this host's hooks and checks, is not connected"
	// reasonUnchecked is why a host is not a candidate before the first outcome of a check.
	reasonUnchecked = "no check has succeeded yet"
)

// Needs lists the elections for which a host needs a companion, as configured.
type Needs struct {
	// Hooked reports whether a hook acts in an election; nil: no election has a hook.
	Hooked func(election.Name) bool
	// Checked are the elections that have a check; api.EveryElection: the host as a whole has one.
	Checked []election.Name
	// KeepLast are those of Checked that this host may lead even while the check fails, if no other host can.
	KeepLast []election.Name
	// Named are the elections that have a hook or a check. With api.EveryElection, all elections that are not named have one too.
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

// check returns the outcome of an election's check, as a companion reports it; false: no companion runs that check.
func (k *Companions) check(of election.Name) (api.Check, bool) {
	for _, c := range k.connected {
		if outcome, ok := c.companion.Checks[string(of)]; ok {
			return outcome, true
		}
	}
	return api.Check{}, false
}

// failing reports whether a check of the election or of the host fails, and why. Without a reason, that check has no outcome yet.
func (k *Companions) failing(name election.Name) (why string, fails bool) {
	for _, of := range []election.Name{api.EveryElection, name} {
		if c, runs := k.check(of); runs && !c.Able {
			return c.Reason, true
		}
	}
	return "", false
}

// Unable returns why this host may not be a candidate in an election, or may be one only as LastResort; empty: it may.
func (k *Companions) Unable(name election.Name) string {
	why, fails := k.failing(name)
	switch {
	case why == "" && k.lacks(name):
		return string(ReasonNoCompanion)
	case why == "" && fails:
		return reasonUnchecked
	}
	return why
}

// LastResort reports whether this host may lead the election only if no other host can. That is so if a check fails,
// every check that fails has keep-last, and nothing else keeps the host from being a candidate.
func (k *Companions) LastResort(name election.Name) bool {
	fails := false
	for _, of := range []election.Name{api.EveryElection, name} {
		if c, runs := k.check(of); runs && !c.Able {
			if fails = true; c.Reason == "" || !slices.Contains(k.cfg.Needs.KeepLast, of) {
				return false
			}
		}
	}
	return fails && !k.lacks(name)
}

// Lacks reports whether a hook or a check of this host needs a companion that is not there.
func (k *Companions) Lacks() bool { return slices.ContainsFunc(k.cfg.Needs.Named, k.lacks) }

// Verdicts returns, by election, why a check keeps this host from being a candidate. The key
// api.EveryElection means all elections.
func (k *Companions) Verdicts() map[election.Name]string {
	all := map[election.Name]string{}
	for _, beside := range k.connected {
		for of, c := range beside.companion.Checks {
			if !c.Able {
				all[election.Name(of)] = cmp.Or(c.Reason, reasonUnchecked)
			}
		}
	}
	return all
}

// Failed returns, by election, why the election's hook failed.
func (k *Companions) Failed() map[election.Name]string {
	all := map[election.Name]string{}
	for _, beside := range k.connected {
		for of, why := range beside.companion.Failed {
			all[election.Name(of)] = why
		}
	}
	return all
}
