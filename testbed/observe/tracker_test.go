package observe_test

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/observe"
)

const lease = 100 * time.Nanosecond

// leads is the line with which an agent's watch reports that the agent begins to lead.
func leads(agent string, term uint64, at int64) observe.Changed {
	return observe.Changed{Agent: agent, Change: api.Change{Type: api.ChangeLeader, Leader: &api.Leader{Name: agent}, IsLeader: true, Term: term, BoottimeNS: at}}
}

func follows(agent, leader string, term uint64, at int64) observe.Changed {
	return observe.Changed{Agent: agent, Change: api.Change{Type: api.ChangeLeader, Leader: &api.Leader{Name: leader}, Term: term, BoottimeNS: at}}
}

func nobody(agent string, term uint64, at int64) observe.Changed {
	return observe.Changed{Agent: agent, Change: api.Change{Type: api.ChangeNoLeader, Term: term, BoottimeNS: at}}
}

// told is an agent's answer that it leads until the deadline.
func told(agent string, term uint64, sent, until int64) observe.Polled {
	return observe.Polled{Agent: agent, Sent: election.Instant(sent), Received: election.Instant(sent + 1), Election: api.Election{
		State: api.StateLeading, IsLeader: true, Leader: &api.Leader{Name: agent}, Term: term, ValidUntilBoottimeNS: until}}
}

func tracked(events ...observe.Event) *observe.Tracker {
	t := observe.NewTracker(lease)
	for _, e := range events {
		t.Apply(e)
	}
	return t
}

func together(t *observe.Tracker) time.Duration {
	return observe.Together(t.Overlaps(), election.Never)
}

func TestASecondLeaderWithinTheLeaseIsFound(t *testing.T) {
	tr := tracked(leads("a", 1, 10), told("a", 1, 20, 110), leads("b", 2, 60), nobody("a", 2, 65))
	if got := together(tr); got != 5 {
		t.Errorf("two led at once for %d, want 5", got)
	}
}

func TestAFrozenLeaderCountsToItsLastDeadline(t *testing.T) {
	tr := tracked(leads("a", 1, 10), told("a", 1, 20, 110))
	tr.Froze("a")
	tr.Apply(leads("b", 2, 100))
	if got := together(tr); got != 10 {
		t.Errorf("while frozen, two led at once for %d, want 10", got)
	}
	tr.Thawed("a", 300)
	tr.Apply(nobody("a", 1, 305)) // it could not report this earlier
	if got := together(tr); got != 10 {
		t.Errorf("thawed, two led at once for %d, want 10", got)
	}
}

func TestAThawedLeaderThatStillSaysItLeadsIsFound(t *testing.T) {
	tr := tracked(leads("a", 1, 10), told("a", 1, 20, 110))
	tr.Froze("a")
	tr.Apply(leads("b", 2, 200))
	tr.Thawed("a", 300)
	tr.Apply(told("a", 1, 301, 110)) // past its own deadline
	tr.Apply(nobody("a", 1, 305))
	if got := together(tr); got != 105 {
		t.Errorf("two led at once for %d, want 105", got)
	}
}

func TestAThawedLeaderThatLeadsOnGoesByItsOwnWordAgain(t *testing.T) {
	tr := tracked(leads("a", 1, 10), told("a", 1, 20, 110))
	tr.Froze("a")
	tr.Thawed("a", 50)
	tr.Apply(told("a", 1, 60, 150))
	tr.Apply(leads("b", 2, 170))
	tr.Apply(nobody("a", 1, 180)) // it led until here, whatever deadline it had reported
	if got := together(tr); got != 10 {
		t.Errorf("two led at once for %d, want 10", got)
	}
}

func TestAKilledLeaderCountsToItsLastDeadline(t *testing.T) {
	tr := tracked(leads("a", 1, 10), told("a", 1, 20, 110))
	tr.Exited("a", 30)
	tr.Apply(observe.Lost{Agent: "a"})
	tr.Apply(leads("b", 2, 109))
	tr.Apply(follows("a", "b", 2, 112)) // a's next life
	if got := together(tr); got != 1 {
		t.Errorf("two led at once for %d, want 1", got)
	}
}

func TestANextLifeMayStepDownShortlyBeforeTheDeadlineUnseen(t *testing.T) {
	for began, want := range map[int64]time.Duration{107: 0, 103: 3} {
		tr := tracked(leads("a", 1, 10), told("a", 1, 20, 110))
		tr.Exited("a", 30)
		tr.Apply(observe.Lost{Agent: "a"})
		tr.Apply(leads("b", 2, began))
		tr.Apply(follows("a", "b", 2, 108))
		if got := together(tr); got != want {
			t.Errorf("b leads at %d: two led at once for %d, want %d", began, got, want)
		}
	}
}

func TestANextLifeThatLeadsOnGoesByItsOwnWord(t *testing.T) {
	tr := tracked(leads("a", 1, 10), told("a", 1, 20, 110))
	tr.Exited("a", 30)
	tr.Apply(leads("a", 1, 40))
	tr.Apply(told("a", 1, 50, 150))
	tr.Apply(leads("a", 2, 60))
	tr.Apply(nobody("a", 2, 70))
	tr.Apply(leads("b", 3, 80))
	if got := together(tr); got != 0 {
		t.Errorf("two led at once for %d, and the next life had stepped down", got)
	}
}

func TestAReleaseThatAnotherAgentHeardEndsTheClaimOfAKilledOne(t *testing.T) {
	heard := nobody("b", 1, 40)
	heard.Change.Reason = string(election.ReasonReleased)
	for name, killedFirst := range map[string]bool{"killed, then heard": true, "heard, then killed": false} {
		tr := tracked(leads("a", 1, 10), told("a", 1, 20, 110))
		if killedFirst {
			tr.Exited("a", 45)
		}
		tr.Apply(heard)
		tr.Apply(leads("b", 2, 50))
		if !killedFirst {
			if got := tr.Overlaps(); len(got) != 1 {
				t.Errorf("%s: while it lives, %d overlaps, want 1", name, len(got))
			}
			tr.Exited("a", 60)
		}
		if got := together(tr); got != 0 {
			t.Errorf("%s: two led at once for %d, want 0", name, got)
		}
	}
}

func TestWithoutQuorumAKilledLeaderEndsAtOnce(t *testing.T) {
	tr := observe.NewTracker(0)
	tr.Apply(leads("a", 1, 10))
	tr.Exited("a", 30)
	tr.Apply(leads("b", 2, 31))
	if got := together(tr); got != 0 {
		t.Errorf("two led at once for %d, want 0", got)
	}
}

func TestAnAnswerBeforeTheWatchSaysSoMovesNoStart(t *testing.T) {
	tr := tracked(told("a", 1, 20, 110), leads("a", 1, 10))
	if c, ok := tr.LedAfter(0); !ok || c.Start != 10 || c.Until != 110 {
		t.Errorf("%+v, want a claim from 10 to 110", c)
	}
}

func TestAnOldAnswerDoesNotReviveALeadership(t *testing.T) {
	tr := tracked(leads("a", 1, 10), nobody("a", 1, 50), leads("b", 2, 55), told("a", 1, 49, 110))
	if got := together(tr); got != 0 {
		t.Errorf("two led at once for %d, want 0", got)
	}
}

func TestAgreement(t *testing.T) {
	all := []string{"a", "b", "c"}
	tr := tracked(leads("a", 1, 10), follows("b", "a", 1, 12))
	if _, ok := tr.Agreement(all); ok {
		t.Error("c has said nothing, and all agree")
	}
	tr.Apply(follows("c", "a", 1, 30))
	if a, ok := tr.Agreement(all); !ok || a != (observe.Agreement{Leader: "a", Term: 1, Led: 10, At: 30}) {
		t.Errorf("%+v %v", a, ok)
	}
	unnamed := follows("b", "ID-of-a", 1, 12)
	named := follows("b", "a", 1, 40)
	named.Change.Type, named.Change.Leader.ID = api.ChangeMeta, "ID-of-a"
	if a, ok := tracked(leads("a", 1, 10), unnamed, named).Agreement(all[:2]); !ok || a.At != 12 {
		t.Errorf("a leader that gossip shows late: %+v %v", a, ok)
	}
	if _, ok := tr.Agreement([]string{"b", "c"}); ok {
		t.Error("the leader is not among those who agree")
	}
	tr.Apply(observe.Lost{Agent: "b"})
	if _, ok := tr.Agreement(all); ok {
		t.Error("b is lost, and all agree")
	}
	tr.Apply(leads("b", 2, 50))
	if got := tr.Leader(); got != "b" {
		t.Errorf("%s leads, want b: its term is higher", got)
	}
}

func TestAChangeToldAgainAfterASnapshotIsDatedByItself(t *testing.T) {
	snapshot := leads("a", 1, 90)
	snapshot.Change.Type = api.ChangeSnapshot
	snapshot.Change.Snapshot = &api.Election{State: api.StateLeading, IsLeader: true, Term: 1, ValidUntilBoottimeNS: 150}
	tr := tracked(snapshot, leads("a", 1, 80))
	if s := tr.View("a"); s.Since != 80 || s.Until != 150 {
		t.Errorf("%+v, want since 80 until 150", s)
	}
}

func TestALeaderThatSaysTooLateThatItsLeaseExpired(t *testing.T) {
	expired := nobody("a", 1, 125)
	expired.Change.Reason = "lease expired"
	asked := func(sent int64) observe.Polled {
		return observe.Polled{Agent: "a", Sent: election.Instant(sent), Received: election.Instant(sent + 1), Election: api.Election{Term: 1}}
	}
	for name, c := range map[string]struct {
		between []observe.Event
		want    time.Duration
	}{
		"was not let run":                   {nil, 0},
		"answered just before":              {[]observe.Event{asked(120)}, 0},
		"answered, and still claimed":       {[]observe.Event{asked(111)}, 10},
		"answered, as asked before the end": {[]observe.Event{asked(105)}, 0},
	} {
		tr := tracked(leads("a", 1, 10), told("a", 1, 20, 110))
		for _, e := range c.between {
			tr.Apply(e)
		}
		tr.Apply(leads("b", 2, 115))
		tr.Apply(expired)
		if got := together(tr); got != c.want {
			t.Errorf("%s: two led at once for %d, want %d", name, got, c.want)
		}
	}
}
