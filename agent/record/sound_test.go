package record

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

func TestAPastThatNoAgentRecordsIsRefused(t *testing.T) {
	const now = election.Instant(time.Hour)
	past := func() *election.Past {
		return &election.Past{Lineage: election.Lineage{ID: 7, Life: 1, Lease: time.Second}, LifeRecord: election.LifeRecord{Retired: 2, Spent: 1, Rows: []election.Authority{
			{Election: election.RosterElection, Highest: 4},
			{Election: "ends", Highest: 4, Term: 4, Until: 9, Ending: election.Ending{Reason: election.ReasonResigned, StopBy: 9}},
			{Election: "led", Highest: 4, Term: 3, Until: now + 1, Priority: 100},
			{Election: "view", Highest: 4, Term: 3, Until: election.Never, Priority: 100},
		}}}
	}
	if err := sound(past(), now); err != nil {
		t.Fatal(err)
	}
	led := func(change func(*election.Authority)) func(*election.Past) {
		return func(p *election.Past) { change(&p.Rows[2]) }
	}
	for name, spoil := range map[string]func(*election.Past){
		"no lineage":               func(p *election.Past) { p.ID = 0 },
		"no lease":                 func(p *election.Past) { p.Lease = 0 },
		"a lease that is too long": func(p *election.Past) { p.Lease = election.MaxLease + 1 },
		"a term beyond the last":   func(p *election.Past) { p.Spent = election.MaxTerm + 1 },
		"a name that can't be":     led(func(a *election.Authority) { a.Election = "Led" }),
		"a row without terms":      led(func(a *election.Authority) { a.Highest = 0 }),
		"a low term alone":         led(func(a *election.Authority) { a.Low = 1 }),
		"a far term alone":         led(func(a *election.Authority) { a.Far = 4 }),
		"a far term beyond":        led(func(a *election.Authority) { a.Low, a.Far = 1, 5 }),
		"a low term above the far": led(func(a *election.Authority) { a.Low, a.Far = 4, 2 }),
		"a highest beyond":         led(func(a *election.Authority) { a.Highest = election.MaxTerm + 1 }),
		"a term not asked for":     led(func(a *election.Authority) { a.Term = 5 }),
		"a deadline leases away":   led(func(a *election.Authority) { a.Until = now.Add(2 * election.MaxLease) }),
		"no deadline":              led(func(a *election.Authority) { a.Until = 0 }),
		"a priority beyond":        led(func(a *election.Authority) { a.Priority = election.MaxPriority + 1 }),
		"a deadline and no term":   led(func(a *election.Authority) { a.Term = 0 }),
		"an end without a reason":  func(p *election.Past) { p.Rows[1].Ending.Reason = "" },
		"two deadlines":            func(p *election.Past) { p.Rows[1].Ending.StopBy = 8 },
	} {
		p := past()
		spoil(p)
		if sound(p, now) == nil {
			t.Errorf("with %s, a life can go on", name)
		}
	}
}
