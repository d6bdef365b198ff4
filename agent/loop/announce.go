package loop

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// withdraw ends what this host does as a leader. The input Stopped follows once the program that
// acts and the companion have stopped, or at once if there is neither. If they take too long, the
// elector releases the term at the deadline.
func (l *Loop) withdraw(w election.Withdrawal) {
	l.given = given{w.Election, l.Actors.Given(w.Election)}
	w.Reason = l.given.because(l.Actors.Companions(), w.Election, w.Reason)
	l.Logger.Info("leadership ends", "election", w.Election, "term", w.Term, "reason", w.Reason)
	change := l.nobody(w.Election, w.Term, string(w.Reason))
	l.Actors.Withdraw(w, &change)
}

// reasonHeardAgain is the reason when an agent that was started again hears the leader that it had
// followed before, in the same term. In this case there was no election.
const reasonHeardAgain election.Reason = "heard again"

// announce reports a change of leader to the programs of this host, the companion, the watches and the log.
func (l *Loop) announce(now election.Instant, before *serve.Picture, a election.Announcement) {
	a.Reason = l.given.because(l.Actors.Companions(), a.Election, a.Reason)
	if a.Event == election.Following && l.History.HeardAgain(string(a.Election), string(a.Leader.Peer), uint64(a.Term)) {
		a.Reason = reasonHeardAgain
	}
	change := api.Change{
		Time: time.Now().UTC(), Election: string(a.Election), Term: uint64(a.Term),
		Reason: string(a.Reason), BoottimeNS: int64(now),
	}
	if a.Event != election.NoLeader {
		change.Leader = l.picture.Load().Leader(a.Leader.Peer)
		change.IsLeader = a.Leader == l.Self
		l.Leaders.follow(change.Election, change.Leader.ID)
	}
	if change.IsLeader && !l.led {
		l.led = true
		l.reach() // all other agents need a connection to this one at once
	}
	switch a.Event {
	case election.NoLeader:
		change.Type = api.ChangeNoLeader
		l.Logger.Info("nobody leads", "election", a.Election, "term", a.Term, "reason", a.Reason)
	case election.NewTerm:
		change.Type = api.ChangeTerm
		l.Logger.Info("term rose", "election", a.Election, "leader", change.Leader.Name, "term", a.Term)
	default:
		change.Type = api.ChangeLeader
		l.Logger.Info(map[bool]string{true: "this agent leads", false: "following"}[change.IsLeader],
			"election", a.Election, "leader", change.Leader.Name, "term", a.Term, "reason", a.Reason)
	}
	l.enter(now, before, a, change)
	c, ok := l.contest(a.Election)
	if change.Leader != nil && c.Leader == a.Leader {
		change.Leader = l.picture.Load().LeaderOf(c) // the history has the leader without its meta
	}
	// A leadership can start and end within one step; then no program is notified.
	switch {
	case a.Leader != l.Self || a.Event != election.Leading && a.Event != election.NewTerm:
		l.Actors.Companions().Change(a.Election, change)
	case !ok || !l.holds(&c) || c.Term != a.Term:
	case a.Event == election.NewTerm:
		l.Actors.Rise(a.Election, a.Term, c.ValidUntil, &change)
	default:
		l.Actors.Lead(now, a.Election, a.Term, c.ValidUntil, &change, words.Word(a.Word))
	}
	l.Hub.Publish(change)
}

// shown has the pictures from which the watches were last sent metas of leaders (metas), and candidates (candidates).
type shown struct {
	metas, candidates *serve.Picture
	until             election.Instant // the watches are sent no candidates before then
	dueAt             election.Instant // when to call update again; Never: no change of candidates waits
}

// candidatesEvery is the least time between the lines about candidates of one update and those of the next.
const candidatesEvery = time.Second

// update sends the watches a leader's new meta or name at once, and new candidates after at most candidatesEvery. The
// loop calls update after the announcements, so that each line has the leader that was announced last.
func (s *shown) update(l *Loop, now election.Instant) {
	picture := l.picture.Load()
	var changed []election.Name
	for _, followed := range l.Hub.Followed() {
		name := election.Name(followed)
		is, _ := serve.ContestOf(picture.Status, name)
		if was, _ := serve.ContestOf(s.metas.Status, name); was.Leader == is.Leader && (was.Meta != is.Meta || s.metas.Names.Of(is.Leader.Peer) != picture.Names.Of(is.Leader.Peer)) {
			l.Hub.Show(picture.Line(api.ChangeMeta, name, now, l.Hub.Index(followed)))
		}
		if was, _ := serve.ContestOf(s.candidates.Status, name); !slices.Equal(was.Candidates, is.Candidates) {
			changed = append(changed, name)
		}
	}
	s.metas = picture
	if len(changed) > 0 && now < s.until {
		s.dueAt = s.until
		l.arm(now, min(l.due, s.dueAt))
		return
	}
	for _, name := range changed {
		s.until = now.Add(candidatesEvery)
		l.Hub.Show(picture.Line(api.ChangeCandidates, name, now, l.Hub.Index(string(name))))
	}
	s.candidates, s.dueAt = picture, election.Never
}

// nobody returns the change which shows that no leader is known. A companion gets it when the companion connects, and
// at the end of a leadership.
func (l *Loop) nobody(name election.Name, term election.Term, why string) api.Change {
	return api.Change{Time: time.Now().UTC(), Type: api.ChangeNoLeader, Election: string(name),
		Term: uint64(term), Reason: why, BoottimeNS: int64(l.Clock())}
}
