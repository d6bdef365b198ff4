package agent

import (
	"maps"
	"time"

	"github.com/doyen-election/doyen/agent/hook"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// announced is the newest event of an election that was given to the hook.
type announced struct {
	event election.Event
	term  election.Term
}

// maxAnnounced bounds loop.announced: twice as many elections as an agent holds.
const maxAnnounced = 2 * election.MaxElections

// remember records what the hook was given. Elections that no longer exist are
// forgotten.
func (l *loop) remember(name election.Name, t announced) {
	l.announced[name] = t
	if len(l.announced) > maxAnnounced {
		maps.DeleteFunc(l.announced, func(n election.Name, _ announced) bool {
			_, exists := l.contest(n)
			return n != name && !exists
		})
	}
}

// withdraw ends what this host does as a leader. The input Stopped follows once the program
// that acts has stopped and the hook's run has ended; at once if there is neither. If they
// take too long, the elector releases the term at the deadline.
func (l *loop) withdraw(w election.Withdrawal) {
	l.given = given{w.Election, l.campaigns.Given(w.Election)}
	w.Reason = l.because(w.Election, w.Reason)
	l.logger.Info("leadership ends", "election", w.Election, "term", w.Term, "reason", w.Reason)
	receipt := election.Stopped{Election: w.Election, Term: w.Term}
	hooked := l.hooks.Covers(w.Election)
	l.campaigns.Withdraw(w, hooked)
	if !hooked {
		return
	}
	l.remember(w.Election, announced{election.NoLeader, w.Term})
	l.hooks.Enqueue(hook.Event{
		Election: w.Election, Event: election.NoLeader, Term: w.Term,
		Change: l.nobody(w.Election, w.Term, string(w.Reason)),
		StopIn: max(w.StopBy.Sub(l.clock()), 1), // above 0 even if the deadline has passed
		Done: func() {
			select {
			case l.receipts <- receipt:
			case <-l.done:
			}
		},
	})
}

// reasonHeardAgain is the reason where an agent that was started again hears the leader that it
// had followed, in the same term: nobody was elected.
const reasonHeardAgain election.Reason = "heard again"

// announce notifies the programs of this host who leads.
func (l *loop) announce(now election.Instant, before *serve.Picture, a election.Announcement) {
	a.Reason = l.because(a.Election, a.Reason)
	if a.Event == election.Following && l.history.HeardAgain(string(a.Election), string(a.Leader.Peer), uint64(a.Term)) {
		a.Reason = reasonHeardAgain
	}
	change := api.Change{
		Time: time.Now().UTC(), Election: string(a.Election), Term: uint64(a.Term),
		Reason: string(a.Reason), BoottimeNS: int64(now),
	}
	if a.Event != election.NoLeader {
		change.Leader = l.picture.Load().Leader(a.Leader.Peer)
		change.IsLeader = a.Leader == l.self
		l.leaders.follow(change.Election, change.Leader.ID)
	}
	if change.IsLeader && !l.led {
		l.led = true
		l.reach() // all other agents need a connection to this one at once
	}
	switch a.Event {
	case election.NoLeader:
		change.Type = api.ChangeNoLeader
		l.logger.Info("nobody leads", "election", a.Election, "term", a.Term, "reason", a.Reason)
	case election.NewTerm:
		change.Type = api.ChangeTerm
		l.logger.Info("term rose", "election", a.Election, "leader", change.Leader.Name, "term", a.Term)
	default:
		change.Type = api.ChangeLeader
		l.logger.Info(map[bool]string{true: "this agent leads", false: "following"}[change.IsLeader],
			"election", a.Election, "leader", change.Leader.Name, "term", a.Term, "reason", a.Reason)
	}
	l.enter(now, before, a, change)
	l.tellCampaigns(now, a)
	l.hub.Publish(change)
	l.tellHook(a, change)
}

// nobody is the change that the hook gets after a start, or after the end of a leadership,
// while no leader is known.
func (l *loop) nobody(name election.Name, term election.Term, why string) api.Change {
	return api.Change{Time: time.Now().UTC(), Type: api.ChangeNoLeader, Election: string(name),
		Term: uint64(term), Reason: why, BoottimeNS: int64(l.clock())}
}

func (l *loop) tellHook(a election.Announcement, c api.Change) {
	if !l.hooks.Covers(a.Election) {
		return
	}
	e := hook.Event{Election: a.Election, Event: a.Event, Term: a.Term, Change: c}
	if c.Leader != nil {
		e.Leader = c.Leader.Name
		e.Event = election.Following
		if c.IsLeader {
			e.Event = election.Leading
		}
	}
	now := announced{e.Event, e.Term}
	if now.event == election.NoLeader && l.announced[a.Election] == now {
		return // withdraw has given it to the hook already
	}
	l.remember(a.Election, now)
	if e.Event == election.Leading {
		e.Stands = func() bool { return l.leads(e.Election, e.Term) }
		e.Until = func() election.Instant { return l.actsUntil(e.Election, e.Term) }
	}
	l.hooks.Enqueue(e)
}

// leads reports whether this agent is inside its lease of that term. Without quorum it reports
// whether the agent led after the last step. Any goroutine may call it.
func (l *loop) leads(name election.Name, term election.Term) bool {
	status := l.picture.Load().Status
	for _, c := range status.Contests {
		if c.Election != name || c.Term != term {
			continue
		}
		if !status.Quorum.Enabled {
			return c.Leader == l.self
		}
		holder, ok := c.LeaderAt(l.clock())
		return ok && holder == l.self
	}
	return false
}

// actsUntil returns the present deadline of a hook run that was started for that term. A
// higher term of this agent prolongs the deadline. The deadline lies after the instant at
// which this agent steps down, and a little before the end of the lease: a run that is killed
// then is dead in time. Any goroutine may call actsUntil.
func (l *loop) actsUntil(name election.Name, term election.Term) election.Instant {
	status := l.picture.Load().Status
	for _, c := range status.Contests {
		switch {
		case c.Election != name || c.Term < term || c.Leader != l.self:
		case !status.Quorum.Enabled:
			return election.Never
		default:
			return c.ValidUntil.Add(-l.heartbeat / 8)
		}
	}
	return 0
}
