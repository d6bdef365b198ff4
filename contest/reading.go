package contest

import "github.com/doyen-election/doyen/election"

func (c *Contest) Name() election.Name { return c.name }

func (c *Contest) Stands() bool { return c.candidate }

func (c *Contest) Priority() int { return c.priority }

// Leader returns the leader that this agent names, perhaps itself; zero: it names none.
func (c *Contest) Leader() Known { return c.leader }

// Vacant reports whether no other agent is known to lead or may lead.
func (c *Contest) Vacant() bool { return c.vacantSince != election.Never }

func (c *Contest) Active() bool { return c.selection.Active() }

// Heeds reports whether a leader is awaited (rumour).
func (c *Contest) Heeds(now election.Instant) bool { return now < c.rumour.heedUntil }

func (c *Contest) Highest() election.Term { return c.highest }

func (c *Contest) Asked() election.Term { return c.asked.highest() }

// Fresh reports whether no term of the election is known to have ended.
func (c *Contest) Fresh() bool { return c.ended == 0 }

// Term is the term that this agent leads, or led and has not released yet; 0: none.
func (c *Contest) Term() election.Term {
	if c.held != nil {
		return c.held.term
	}
	return 0
}

// WonBy is the roster whose majority first promised the term that this agent leads.
func (c *Contest) WonBy() *election.Roster { return c.held.lease.Won() }

func (c *Contest) Field(f Facts) election.Field { return c.field(new(step).begin(f)) }

func (c *Contest) Unable(f Facts) election.Obstacle { return c.unable(new(step).begin(f)) }

// StandsDown reports whether a candidate lets others go first for a time.
func (c *Contest) StandsDown(now election.Instant) bool {
	for _, until := range c.standDowns {
		if now < until {
			return true
		}
	}
	return false
}
