package elector

import (
	"cmp"
	"slices"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
)

// listening is how this agent learns from voters who leads, in elections whose leader it does not hear (G5). Their
// answers name a leader, and keep this agent from seeking another one.
type listening struct {
	askAt  election.Instant // when to ask next
	vain   int              // how many questions were sent since the last answer that named a leader, up to maxProbes
	source election.PeerID  // the voter that is asked alone, because it has named a leader; empty: a few are asked in turn
	mute   bool             // the source has not answered the last question
	turn   int              // how many voters were asked in turn
	named  table[election.Name, named]
}

const askedAtOnce = 3 // at most so many voters are asked at once

// named is a leader that a voter hears. It counts as lost from the instant `until` on, if no later answer names it.
type named struct {
	holder election.Holder
	until  election.Instant
}

// deaf reports whether this agent has to ask voters who leads: it does not lead, and no leader's heartbeats arrive.
func (c *entry) deaf() bool {
	h := c.Leader().Holder
	if p := c.e.peers.get(h.Peer); c.e.runs(h) && p.beats != nil && !p.overdue(c.e.now) {
		return false
	}
	return c.e.cfg.Quorum && c.Name() != election.RosterElection && c.Term() == 0
}

// lose sets the next question to a heartbeat interval from now if this agent has just become deaf, or awaits a leader
// that a voter has reported. Not at once: most leaders that are lost are lost to all, and another one is heard soon.
func (l *listening) lose(c *entry) {
	before := c.lost
	if c.lost = c.deaf(); c.lost && (!before || c.Heeds(c.e.now)) {
		l.askAt, l.vain = min(l.askAt, c.e.now.Add(c.e.cfg.Heartbeat)), 0
	}
}

// ask sends a question in each heartbeat interval; more and more rarely if the voters hear no leader either. It
// returns when to ask again.
func (l *listening) ask(e *Elector) election.Instant {
	if e.now < l.askAt {
		return l.askAt
	}
	l.askAt = election.Never
	var names []election.Name
	for _, c := range e.contests.rows {
		if c.lost = c.deaf(); c.lost {
			names = append(names, c.Name())
		} else {
			l.named.remove(c.Name())
		}
	}
	if len(names) == 0 {
		return election.Never
	}
	for _, voter := range l.asked(e) {
		e.send(voter, election.Listen{Stamp: e.now, Elections: names})
	}
	l.askAt = e.now.Add(e.cfg.Heartbeat << l.vain)
	l.vain = min(l.vain+1, maxProbes)
	return l.askAt
}

// asked returns the source if it answers, or else the next few voters.
func (l *listening) asked(e *Elector) []election.PeerID {
	var voters []election.PeerID
	for _, v := range e.roster.All() {
		if p := e.peers.get(v.Peer); p != nil && p.Level >= election.LevelNews {
			voters = append(voters, v.Peer)
		}
	}
	if slices.Contains(voters, l.source) && !l.mute {
		l.mute = true
		return []election.PeerID{l.source}
	}
	l.source = ""
	if len(voters) > askedAtOnce {
		first := (l.turn + int(uint64(e.cfg.Self.Lineage)%uint64(len(voters)))) % len(voters) // so that not all agents ask the same voters
		l.turn += askedAtOnce
		voters = slices.Concat(voters[first:], voters[:first])[:askedAtOnce]
	}
	return voters
}

// answer lists the leaders that this voter hears. It passes on no News of other voters: otherwise
// two voters could name a lost leader to each other without end.
func (l *listening) answer(e *Elector, from election.PeerID, m election.Listen) {
	news := election.News{Echo: m.Stamp}
	for _, name := range m.Elections {
		c := e.contests.get(name)
		if c == nil || c.deaf() || e.now >= c.Leader().Until || !e.roster.Has(e.cfg.Self.Peer) {
			continue
		}
		k, g := c.Leader(), e.ledger.State().Grant(name)
		news.Leaders = append(news.Leaders, election.Heard{Election: name, Term: k.Term, Holder: k.Holder, Remaining: k.Until.Sub(e.now),
			Age: max(0, e.now.Sub(k.Heard)), Sure: k.Holder == e.cfg.Self || g.Holder == k.Holder && g.Term == k.Term})
	}
	e.send(from, news)
}

// hear follows the leaders that a voter hears. What remains of their leases counts from this agent's question.
func (l *listening) hear(e *Elector, from election.PeerID, m election.News) {
	if !e.votes(from, nil) || m.Echo < e.started {
		e.counters.Dropped["stale_news"]++
		return
	}
	alone := from == l.source && l.mute // it answers a question that no other voter was asked
	l.mute = l.mute && !alone
	for _, h := range m.Leaders {
		c, until := e.contests.get(h.Election), e.claimEnd(h.Remaining, m.Echo)
		if c == nil || !c.deaf() || h.Holder.Peer == e.cfg.Self.Peer || until <= e.now {
			continue
		}
		if h.Sure && h.Term > c.Leader().Term {
			e.carry(c, c.Record(c, election.Record{Election: h.Election, Term: h.Term, Holder: h.Holder, Remaining: h.Remaining}))
		}
		e.claimed(h.Election, contest.Known{Holder: h.Holder, Term: h.Term, Heard: m.Echo.Add(-h.Age), Until: until}, 0)
		if k := c.Leader(); k.Holder == h.Holder && k.Term == h.Term {
			l.named.put(h.Election, named{h.Holder, e.now.Add(2 * e.cfg.Heartbeat)})
			l.source = cmp.Or(l.source, from)
			l.askAt, l.vain = min(l.askAt, e.now.Add(e.cfg.Heartbeat)), 0
			c.touch()
		}
	}
	for i, name := range l.named.keys {
		names := slices.ContainsFunc(m.Leaders, func(h election.Heard) bool { return h.Election == name })
		if alone && !names && e.now < l.named.rows[i].until {
			l.source, l.askAt = "", e.now // others may still hear that leader
		}
	}
}
