package loop

import (
	"fmt"
	"maps"
	"slices"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// given has the election whose leadership ended last, and the reason that the program or companion gave; empty: none.
type given struct {
	election election.Name
	why      election.Reason
}

// because returns the reason that people see. If a program, a companion or a check has caused the end of the
// leadership, because returns its reason.
func (g given) because(c *actors.Companions, name election.Name, why election.Reason) election.Reason {
	withdrawn := why == election.ReasonWithdrawn || why == election.ReasonPreempted && c.LastResort(name)
	switch unable := c.Unable(name); {
	case (withdrawn || why == election.ReasonResigned) && g.election == name && g.why != "":
		return g.why
	case withdrawn && unable != "":
		return election.Reason(unable)
	}
	return why
}

// actingWarnings returns the warnings about failing checks, failed hooks and a missing companion.
func (l *Loop) actingWarnings() (all []api.Warning) {
	where := func(name election.Name) string {
		if name == api.EveryElection {
			return "in any election"
		}
		return "in " + string(name)
	}
	verdicts := l.Actors.Companions().Verdicts()
	for _, name := range slices.Sorted(maps.Keys(verdicts)) {
		is := "is not a candidate "
		if l.Actors.Companions().LastResort(name) {
			is = "leads only where no other host can (keep-last) "
		}
		all = append(all, api.Warning{Code: warnUnhealthy, Message: "this host " + is + where(name) + ": " + verdicts[name]})
	}
	failed := l.Actors.Companions().Failed()
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		all = append(all, api.Warning{Code: warnHookFailed, Message: fmt.Sprintf(
			"the hook has failed %s: %s; what it should have set up for this leader may be missing: correct it, then run doyen resign %s or doyen reload", where(name), failed[name], name)})
	}
	if l.Actors.Companions().Lacks() {
		all = append(all, api.Warning{Code: warnActMissing, Message: "doyen act is not connected, so no hook or check of this host runs, and it is not a candidate where the configuration names one: " +
			"the agent's keeper starts doyen act; without a keeper, or with act: false, start it beside the agent (the log of both has the reason if it ended)"})
	}
	return all
}
