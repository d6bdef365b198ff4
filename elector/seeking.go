package elector

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// seek finds a leader while none is known: it starts a round of selection when
// this agent's turn has come, and follows it up.
func (e *Elector) seek(c *contest) {
	if c.role() == nominee && e.won(c.bid) {
		e.becomeLeader(c, &tenure{term: c.bid.lease.Term, lease: c.bid.lease})
		return
	}
	if !e.vacant(c) {
		if c.role() == nominee { // two that refuse each other must not start again in step
			c.notBefore = max(c.notBefore, e.now.Add(e.jitter(e.cfg.Timing.Heartbeat)))
		}
		if c.role() == nominee || c.selection.Active() {
			e.abandon(c)
			c.selection.Stop()
		}
		c.vacantSince = election.Never
		return
	}
	c.vacantSince = min(c.vacantSince, e.now)
	f := e.field(c)
	e.apply(c, f, c.selection.Tick(e.now, f)) // even without a round of its own: Ring passes others' tokens on
	switch {
	case c.role() == nominee:
		e.pursue(c, f)
	case c.selection.Active():
	case !e.informed():
		if at := e.started.Add(informWait * e.cfg.Timing.Heartbeat); !e.cfg.Quorum && e.now < at {
			c.wake(at) // for whom nobody may tell; else a Report wakes us
		}
	case f.Able:
		e.startInTurn(c, f)
	case e.now < c.standDownUntil:
		c.wake(c.standDownUntil)
	}
}

// startInTurn starts a round once the better-ranked had time to start theirs,
// so that a lost leader does not start a herd.
func (e *Elector) startInTurn(c *contest, f election.Field) {
	turn := slices.IndexFunc(f.Ranks, func(r election.Rank) bool { return r.Peer == e.cfg.Self.Peer })
	start := max(c.vacantSince.Add(time.Duration(turn)*e.cfg.Timing.stagger()), e.firstTurn(c), c.notBefore)
	if e.now < start {
		c.wake(start)
		return
	}
	if f.Full {
		e.agenda.queue(c, true)
		return
	}
	c.begun = true
	e.counters.Rounds++
	e.apply(c, f, c.selection.Start(e.now, f))
	e.agenda.recount(c)
}

const (
	// crowd is how many members make it a matter of who starts the first round.
	crowd = 16
	// crowdStagger is how many times as long as else each waits for the next better
	// one then.
	crowdStagger = 4
)

// firstTurn is when this agent may start a round for the first leader that it hears
// of, in a crowd. All have just begun, on machines that are busy with that, and are
// not connected to each other yet: each would take itself for one of the best, and
// rounds of a hundred keep all too busy to vote. So the better ones among all members
// count, connected or not, from when enough voters have told what they know.
func (e *Elector) firstTurn(c *contest) election.Instant {
	if e.settled || !e.cfg.Quorum || len(e.view.Members) < crowd {
		return 0
	}
	if e.informedAt == 0 {
		e.informedAt = e.now
	}
	better := 0
	own := e.ownRank(c)
	for _, m := range e.view.Members {
		if r, stands := e.rank(m, c.name); stands && r.Priority > 0 && r.Above(own) {
			better++
		}
	}
	return e.informedAt.Add(time.Duration(better*crowdStagger) * e.cfg.Timing.stagger())
}

// contested reports whether this agent has a round or an attempt of its own under
// way: who stands back for another only waits.
func (c *contest) contested() bool {
	return c.role() == nominee || c.begun && c.selection.Active()
}

// vacant reports whether nobody is known to lead, or whoever does is thought
// lost. The old lease may still run: selection uses the time until it ends. An
// agent that was not told yet takes part in rounds, and starts none.
func (e *Elector) vacant(c *contest) bool {
	if c.leader.holder != (election.Holder{}) {
		if !e.runs(c.leader.holder) {
			return true
		}
		return e.suspects(c)
	}
	if e.now < c.rumour.heedUntil && e.runs(c.rumour.holder) && !e.silent(c.rumour.holder.Peer) {
		c.wake(c.rumour.heedUntil)
		return false
	}
	return true
}

// suspects reports whether the known leader's heartbeats are overdue.
func (e *Elector) suspects(c *contest) bool {
	p := e.peers.get(c.leader.holder.Peer)
	if p.beats == nil {
		return false
	}
	if p.beats.Suspects(e.now) {
		if c.vacantSince == election.Never {
			e.counters.Suspicions++
		}
		return true
	}
	c.wake(p.beats.Deadline())
	return false
}

// selectionWord hands a message of Bully or Ring to the algorithm in use.
func (e *Elector) selectionWord(from election.PeerID, m election.Message) {
	name, ok := selectionOf(m, e.cfg.Algorithm)
	if !ok {
		e.counters.Dropped["other_algorithm"]++
		return
	}
	c := e.contest(name)
	if c == nil {
		return
	}
	if !e.mayBeVacant(c) {
		return // a live leader is followed here: its heartbeats will tell the sender
	}
	f := e.field(c)
	e.apply(c, f, c.selection.Receive(e.now, f, from, m))
}

// mayBeVacant reports whether a message of selection deserves an answer: this
// agent leads, stands aside and must say so, or knows of no live leader.
func (e *Elector) mayBeVacant(c *contest) bool {
	return c.role() != follower || e.vacant(c) || !c.standing || e.unable(c) != 0
}

// apply carries out what the algorithm asks for.
func (e *Elector) apply(c *contest, f election.Field, v election.Verdict) {
	e.sendAll(v.Send)
	c.wake(v.WakeAt)
	switch {
	case !v.Nominee || c.role() != follower || !f.Able:
	case !c.begun && e.agenda.full():
		// It was asked to take part by another's round: its own waits for its turn.
		c.selection.Stop()
		e.agenda.queue(c, true)
	default:
		e.nominate(c, f)
	}
}

// selectionOf returns the election a selection message is about, and whether
// it belongs to the algorithm in use.
func selectionOf(m election.Message, a Algorithm) (election.Name, bool) {
	switch m := m.(type) {
	case election.BullyElection:
		return m.Election, a == Bully
	case election.BullyAnswer:
		return m.Election, a == Bully
	case election.BullyDecline:
		return m.Election, a == Bully
	case election.BullyCoordinator:
		return m.Election, a == Bully
	case election.RingElection:
		return m.Election, a == Ring
	case election.RingAck:
		return m.Election, a == Ring
	case election.RingElected:
		return m.Election, a == Ring
	}
	return "", false
}
