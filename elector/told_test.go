package elector

import (
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// stale says in what the picture that readers are given differs from one made
// from nothing, empty if in nothing: what is not looked at again must not have
// changed. A leadership that is over and still told would be believed, on a lease
// page for one, while its successor acts. The harnesses of this package ask after
// each step.
func stale(e *Elector) string {
	shown := e.Contests()
	e.shown = nil
	if anew := e.Contests(); !slices.Equal(shown, anew) {
		return fmt.Sprintf("readers are shown %d elections, there are %d", len(shown), len(anew))
	}
	if problem := e.agenda.problem(e.contests.rows); problem != "" {
		return problem
	}
	facts := e.facts.renew(e)
	for _, c := range e.contests.rows {
		if c.role() == leader && c.held.lease != nil && e.actsUntil(c) < e.expiresAt {
			return fmt.Sprintf("the lease of %s ends unseen", c.name)
		}
		kept := c.listing
		c.listing.key = listingKey{}
		c.listing.renew(e, c, facts)
		fresh := e.contestStatus(c)
		c.listing = kept
		if !fresh.agrees(c.told) || !slices.Equal(fresh.Candidates, c.told.Candidates) {
			return fmt.Sprintf("readers are told %+v, it is %+v", *c.told, fresh)
		}
	}
	return ""
}

// problem says in what the lists differ from what the elections say of themselves.
func (a *agenda) problem(all []*contest) string {
	contesting, queued, touched, untold, waking := 0, 0, 0, 0, 0
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	for _, c := range all {
		count(&contesting, c.counted)
		count(&queued, c.queued)
		count(&touched, c.touched)
		count(&untold, c.untold)
		count(&waking, c.ringsAt != election.Never)
		switch {
		case !c.touched && c.counted != c.contested():
			return fmt.Sprintf("%s contests: %t, counted: %t", c.name, c.contested(), c.counted)
		case c.touched && !slices.Contains(a.touched, c), c.untold && !slices.Contains(a.untold, c):
			return fmt.Sprintf("%s is in no list: touched %t, untold %t", c.name, c.touched, c.untold)
		case c.ringsAt != election.Never && (c.place >= len(a.wakes) || a.wakes[c.place] != c):
			return fmt.Sprintf("%s wants to wake and is not among those", c.name)
		case c.wakeAt < c.ringsAt, c.ringsAt < a.wakes.next():
			return fmt.Sprintf("%s is woken too late", c.name)
		}
	}
	if contesting != a.contesting || queued != a.queued || touched != len(a.touched) || untold != len(a.untold) || waking != len(a.wakes) {
		return fmt.Sprintf("of %d elections %d contest, %d are queued, %d touched, %d untold, %d wait; listed are %d, %d, %d, %d, %d", len(all),
			contesting, queued, touched, untold, waking, a.contesting, a.queued, len(a.touched), len(a.untold), len(a.wakes))
	}
	return ""
}
