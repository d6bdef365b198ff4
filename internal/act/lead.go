package act

import (
	"context"
	"maps"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/hook"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

// lead handles a line with a deadline, and runs the hook if the term is new.
func (a *actor) lead(name election.Name, e api.CampaignEvent) {
	now, until := boottime.Now(), election.Instant(e.ValidUntilBoottimeNS)
	view := e.Authority == api.AuthorityView
	if a.stopping || !view && until <= now {
		return // the leadership expired before the line was read: the agent releases it at the deadline
	}
	l, led := a.led[name]
	begins := !led || election.Term(e.Term) > l.term
	if led && election.Term(e.Term) < l.term || !led && a.announced[name].event == election.NoLeader && uint64(a.announced[name].term) == e.Term && e.Type == api.CampaignRenewed {
		return // this leadership is already being ended
	}
	a.mu.Lock()
	a.led[name] = lead{term: election.Term(e.Term), until: until, view: view, lease: max(l.lease, until.Sub(now))}
	a.mu.Unlock()
	if !begins {
		return
	}
	change := api.Change{Time: time.Now().UTC(), Type: api.ChangeLeader, Election: e.Election, IsLeader: true, Term: e.Term, BoottimeNS: int64(now)}
	if e.Change != nil {
		change = *e.Change
	}
	change.Term = e.Term
	a.failures[name] = 0
	a.run(name, change)
}

// run runs the hook for a leadership of this host.
func (a *actor) run(name election.Name, change api.Change) {
	term, leader := election.Term(change.Term), ""
	if change.Leader != nil {
		leader = change.Leader.Name
	}
	a.remember(name, announced{election.Leading, term, leader, change})
	a.hooks.Enqueue(hook.Event{Election: name, Event: election.Leading, Leader: leader, Term: term, Change: change,
		Stands: func() bool { return boottime.Now() < a.actsUntil(name, term) },
		Until:  func() election.Instant { return a.actsUntil(name, term) },
		Result: func(err error) { go a.call(func() { a.result(name, term, err) }) },
	})
}

// actsUntil returns the present deadline of a run that was started for that term. A higher term of this host
// extends it. It is earlier than the end of the lease by the time that a kill may take.
func (a *actor) actsUntil(name election.Name, term election.Term) election.Instant {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, led := a.led[name]
	switch {
	case !led || l.term < term:
		return 0
	case l.view:
		return election.Never
	}
	return l.until.Add(-guard.Margin(l.lease))
}

// result handles the outcome of a run for a leadership.
func (a *actor) result(name election.Name, term election.Term, err error) {
	l, led := a.led[name]
	if !led || l.term != term {
		return
	}
	why := ""
	if a.failures[name]++; err == nil {
		a.failures[name] = 0
	} else {
		why = health.Line(err.Error())
	}
	if was := a.failed[string(name)]; why != was {
		if a.failed[string(name)] = why; why == "" {
			delete(a.failed, string(name))
		}
		a.dirty = true
	}
	switch n := a.failures[name]; {
	case err == nil || a.Work.Failures == 0:
	case n >= a.Work.Failures:
		why = "hook failed: " + why
		a.end(name, l, nobody(name, term, why), why, l.until.Sub(boottime.Now()))
	default:
		change := a.announced[name].change
		a.repeats[name] = time.AfterFunc(time.Second<<min(n-1, 4), func() {
			a.call(func() {
				if l, led := a.led[name]; led && l.term == term {
					a.run(name, change)
				}
			})
		})
	}
}

// revoked handles the agent's line that this host has to stop acting under a leadership.
func (a *actor) revoked(name election.Name, e api.CampaignEvent) {
	l := a.led[name]
	l.term = max(l.term, election.Term(e.Term))
	change := nobody(name, l.term, e.Reason)
	if e.Change != nil {
		change = *e.Change
	}
	a.end(name, l, change, "", election.Instant(e.StopByBoottimeNS).Sub(boottime.Now()))
}

// end runs the hook with `none`, which undoes what a run with `leading` has set up, and then gives the receipt.
// why is the reason if the agent did not ask for the end, else empty. After stopIn another agent may lead; 0:
// not known.
func (a *actor) end(name election.Name, l lead, change api.Change, why string, stopIn time.Duration) {
	a.mu.Lock()
	delete(a.led, name)
	a.mu.Unlock()
	if t := a.repeats[name]; t != nil {
		t.Stop()
		delete(a.repeats, name)
	}
	if _, was := a.failed[string(name)]; was {
		delete(a.failed, string(name))
		a.dirty = true
	}
	if change.Leader != nil { // another host leads already; the hook first runs for the end of this host's leadership
		change = nobody(name, l.term, change.Reason)
	}
	a.remember(name, announced{event: election.NoLeader, term: l.term, change: change})
	a.receipts.Add(1)
	a.hooks.Enqueue(hook.Event{Election: name, Event: election.NoLeader, Term: l.term, Change: change, StopIn: max(stopIn, 1), Command: a.hooks.Command(name),
		Done: func() { go a.call(func() { a.receipt(name, l.term, why) }) }})
}

// receipt reports to the agent that nothing acts here any more under that term.
func (a *actor) receipt(name election.Name, term election.Term, why string) {
	a.hooks.Configure(a.kept(a.Work.Hooks)) // a hook that was removed from the configuration has now run for the last time
	k := a.candidacy
	if k == nil || term == 0 { // an agent that is away waits for the deadline
		a.receipts.Done()
		return
	}
	go func() {
		defer a.receipts.Done()
		ctx, cancel := context.WithTimeout(a.ctx, callTimeout)
		defer cancel()
		if err := k.StoppedIn(ctx, string(name), uint64(term), why); err != nil && a.ctx.Err() == nil {
			a.Logger.Warn("the agent did not take the receipt: a successor waits for the end of the lease", "election", name, "term", term, "err", err)
		}
	}()
}

// expire ends the leaderships whose deadline has passed.
func (a *actor) expire(now election.Instant) {
	for name, l := range a.led {
		if !l.view && now >= l.until.Add(-guard.Margin(l.lease)) {
			a.Logger.Warn("the agent did not prolong a leadership: ending it", "election", name, "term", l.term)
			a.end(name, l, nobody(name, l.term, whyExpired), whyExpired, l.until.Sub(now))
		}
	}
}

// next is how long the loop may wait for an event.
func (a *actor) next(now election.Instant) time.Duration {
	wait := time.Hour
	for _, l := range a.led {
		if !l.view {
			wait = min(wait, l.until.Add(-guard.Margin(l.lease)).Sub(now))
		}
	}
	return max(wait, 0)
}

// announce runs the hook for a leader on another host, or because no leader is known.
func (a *actor) announce(name election.Name, c api.Change) {
	now := announced{event: election.NoLeader, term: election.Term(c.Term), change: c}
	if c.Leader != nil {
		now.event, now.leader = election.Following, c.Leader.Name
	}
	if was, known := a.announced[name]; known && was.event == now.event && was.leader == now.leader && (was.term == now.term || now.event == election.NoLeader) {
		return
	}
	a.remember(name, now)
	if a.hooks.Command(name) != "" {
		a.hooks.Enqueue(hook.Event{Election: name, Event: now.event, Leader: now.leader, Term: now.term, Change: c})
	}
}

// remember keeps the newest event of an election. Elections come and go: if there are too many, it
// forgets those without a leader.
func (a *actor) remember(name election.Name, now announced) {
	if len(a.announced) > 2*election.MaxElections {
		maps.DeleteFunc(a.announced, func(_ election.Name, was announced) bool { return was.event == election.NoLeader })
	}
	a.announced[name] = now
}

// nobody returns the change that reports the end of a leadership.
func nobody(name election.Name, term election.Term, why string) api.Change {
	return api.Change{Time: time.Now().UTC(), Type: api.ChangeNoLeader, Election: string(name), Term: uint64(term), Reason: why, BoottimeNS: int64(boottime.Now())}
}
