package elector

import (
	"fmt"
	"slices"
)

// stale says in what the picture that readers are given differs from one made
// from nothing, empty if in nothing: what is not looked at again must not have
// changed. A leadership that is over and still told would be believed, on a lease
// page for one, while its successor acts. The harnesses of this package ask after
// each step.
func stale(e *Elector) string {
	e.Contests()
	facts := e.facts.renew(e)
	for _, c := range e.contests.rows {
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
