package record

import (
	"errors"
	"fmt"

	"github.com/doyen-election/doyen/election"
)

// sound returns why no life can continue from the past at that instant; nil: the next life can. If the past holds
// what a correct agent never records, somebody else has changed the record.
func sound(p *election.Past, now election.Instant) error {
	switch {
	case p.ID == 0 || p.Lease <= 0 || p.Lease > election.MaxLease:
		return errors.New("the record has no lineage, or no lease")
	case p.Retired > election.MaxTerm || p.Spent > election.MaxTerm:
		return errors.New("the record has a term that can't be")
	}
	for _, a := range p.Rows {
		if !canBe(a, now) {
			return fmt.Errorf("the record's row of %q is not one of an agent's", a.Election)
		}
	}
	return nil
}

func canBe(a election.Authority, now election.Instant) bool {
	ends := a.Ending != election.Ending{}
	soon := func(i election.Instant) bool { return i > 0 && i <= now.Add(election.MaxLease) }
	switch {
	case a.Election != election.RosterElection && !election.ValidName(string(a.Election)), a.Highest == 0, a.Highest > election.MaxTerm, a.Term > a.Highest, a.Low != 0 && a.Low >= a.Far, a.Far > a.Highest, a.Far != 0 && a.Low == 0,
		a.Priority < 0, a.Priority > election.MaxPriority:
		return false
	case a.Term == 0:
		return a.Until == 0 && !ends
	case ends:
		return a.Ending.Reason != "" && a.Ending.StopBy == a.Until && soon(a.Until)
	}
	return a.Until == election.Never || soon(a.Until)
}
