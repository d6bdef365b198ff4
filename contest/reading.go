package contest

import "github.com/doyen-election/doyen/election"

func (c *Contest) Name() election.Name { return c.name }

func (c *Contest) Stands() bool { return c.candidate }

func (c *Contest) Priority() int { return c.priority }

// Leader returns the leader that this agent names, which may be itself; zero if it names none.
func (c *Contest) Leader() Known { return c.leader }

// Vacant reports whether no leader is known, and none may be leading.
func (c *Contest) Vacant() bool { return c.vacantSince != election.Never }

func (c *Contest) Active() bool { return c.selection.Active() }

// Heeds reports whether this agent awaits a leader that was reported or claims to lead (rumour).
func (c *Contest) Heeds(now election.Instant) bool { return now < c.rumour.heedUntil }

func (c *Contest) Highest() election.Term { return c.highest }

func (c *Contest) Asked() election.Term { return c.asked.highest() }

// Fresh reports whether no term of the election is known to have ended.
func (c *Contest) Fresh() bool { return c.ended == 0 }

// Term is the term that this agent leads, or has led and not released yet; 0: none.
func (c *Contest) Term() election.Term {
	if c.held != nil {
		return c.held.term
	}
	return 0
}

// WonBy is the roster whose majority first promised the term that this agent leads.
func (c *Contest) WonBy() *election.Roster { return c.held.lease.Won() }

func (c *Contest) Field(f Facts) election.Field { return c.field(new(step).begin(c, f)) }

func (c *Contest) Unable(f Facts) election.Obstacle { return c.unable(new(step).begin(c, f)) }

// StandsDown reports whether any candidate, this agent included, now lets others go first.
func (c *Contest) StandsDown(now election.Instant) bool {
	for _, until := range c.standDowns {
		if now < until {
			return true
		}
	}
	return false
}
