package agent

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/agent/campaign"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// whyAgentStops is the reason in the last line to programs that are candidates.
const whyAgentStops = "the agent stops"

// call has the loop run f, and returns true once f has run; false if the loop has ended.
func (l *loop) call(f func(now election.Instant)) bool {
	done := make(chan struct{})
	select {
	case l.calls <- func() {
		f(l.clock())
		close(done)
	}:
		<-done
		return true
	case <-l.done:
		return false
	}
}

// Stand adds a program's candidacy. Errors are *api.ErrorDetail.
func (l *loop) Stand(q campaign.Request) (k *campaign.Candidacy, err error) {
	err = &api.ErrorDetail{Code: api.CodeUnavailable, Message: whyAgentStops}
	l.call(func(now election.Instant) {
		if l.stopping {
			return
		}
		if k, err = l.campaigns.Stand(now, q); err != nil {
			return
		}
		l.drainQueue()
		if _, exists := l.contest(q.Election); !exists {
			l.campaigns.End(k.ID())
			l.drainQueue()
			k, err = nil, &api.ErrorDetail{Code: api.CodeBusy, Message: fmt.Sprintf(
				"there are too many elections: %s can't be created", q.Election)}
		}
	})
	return k, err
}

// Resume gives a program its candidacy back. Errors are *api.ErrorDetail.
func (l *loop) Resume(q campaign.Resumption) (k *campaign.Candidacy, err error) {
	err = &api.ErrorDetail{Code: api.CodeUnavailable, Message: whyAgentStops}
	l.call(func(now election.Instant) {
		k, err = l.campaigns.Resume(now, q)
		l.drainQueue()
	})
	return k, err
}

// End ends a candidacy. If its program may still act, waits is true, and until is its deadline:
// a later proof that the program has ended changes nothing.
func (l *loop) End(id string) (until election.Instant, waits bool) {
	l.call(func(election.Instant) {
		l.campaigns.End(id)
		l.drainQueue()
		until, waits = l.campaigns.Awaits(id)
	})
	return until, waits
}

// Gone records the proof that the program of a candidacy has ended.
func (l *loop) Gone(id string) {
	l.call(func(election.Instant) { l.campaigns.Gone(id) })
}

// Receipt records a program's report that it has stopped. Errors are *api.ErrorDetail.
func (l *loop) Receipt(id string, term election.Term, why election.Reason, authorized func(uid uint32) bool) (err error) {
	err = &api.ErrorDetail{Code: api.CodeUnavailable, Message: whyAgentStops}
	l.call(func(election.Instant) { err = l.campaigns.Receipt(id, term, why, authorized) })
	return err
}

// Campaigns lists the programs that are candidates; none once the loop has ended.
func (l *loop) Campaigns() []api.Campaign {
	all := []api.Campaign{}
	l.call(func(election.Instant) { all = append(all, l.campaigns.List()...) })
	return all
}

// contest returns an election as the newest picture shows it.
func (l *loop) contest(name election.Name) (elector.ContestStatus, bool) {
	contests := l.picture.Load().Status.Contests
	i, ok := slices.BinarySearchFunc(contests, name, func(c *elector.ContestStatus, n election.Name) int {
		return cmp.Compare(c.Election, n)
	})
	if !ok {
		return elector.ContestStatus{}, false
	}
	return *contests[i], true
}

// prolong notifies the programs whose leases were renewed since its last call. If an election
// has not changed, both pictures share one pointer to it.
func (l *loop) prolong() {
	before := l.prolonged
	l.prolonged = l.picture.Load().Status.Contests
	for i, c := range l.prolonged {
		if i < len(before) && before[i] == c {
			continue
		}
		if l.holds(c) {
			l.campaigns.Prolong(c.Election, c.Term, c.ValidUntil)
		}
	}
}

func (l *loop) holds(c *elector.ContestStatus) bool {
	return c.State == elector.Leading && c.Leader == l.self
}

// tellCampaigns notifies the program that is to act that this agent leads. A leadership can
// start and end within one step; then no program is notified.
func (l *loop) tellCampaigns(now election.Instant, a election.Announcement) {
	if a.Leader != l.self || a.Event != election.Leading && a.Event != election.NewTerm {
		return
	}
	c, ok := l.contest(a.Election)
	switch {
	case !ok || !l.holds(&c) || c.Term != a.Term:
	case a.Event == election.NewTerm:
		l.campaigns.Rise(a.Election, a.Term, c.ValidUntil)
	default:
		l.campaigns.Lead(now, a.Election, a.Term, c.ValidUntil)
	}
}
