package exhaustive

import (
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// This file numbers the parts of a wordWorld, and plays their reactions.

// number returns the index of a value: next if it is new. Equal values have one index.
func (w *wordWorld) number(kind string, value any, next int) (n uint16, isNew bool) {
	key := kind + string(w.encoder.append(nil, 0, reflect.ValueOf(value)))
	if n, known := w.numbers[key]; known {
		return n, false
	}
	if next > math.MaxUint16 || kind != "voter" && kind != "contest" && next >= 128 {
		panic("the world is too large: its parts have no numbers left")
	}
	w.numbers[key] = uint16(next)
	return uint16(next), true
}

func (w *wordWorld) voter(s election.State) uint16 {
	n, isNew := w.number("voter", []any{s.Peer, s.Roster.Version, s.Grants, s.Words, s.Forgotten}, len(w.voters))
	if isNew {
		w.voters = append(w.voters, s)
	}
	return n
}

func (w *wordWorld) message(m election.Message) uint16 {
	r, _ := m.(election.VoteRequest)
	n, isNew := w.number(reflect.TypeOf(m).Name(), []any{m, r.Roster.Version}, len(w.sent))
	if isNew {
		w.sent = append(w.sent, m)
	}
	return n
}

// react lets a voter handle a message, when all its promises have ended.
func (w *wordWorld) react(voter, message uint16) reaction {
	key := [2]uint16{voter, message}
	if r, known := w.reactions[key]; known {
		return r
	}
	p, now := w.process(indexOf(w.voters[voter].Peer), w.voters[voter]), epoch.Add(time.Hour)
	w.handle(p.voter, w.sent[message], now)
	r := reaction{voter: w.settled(p, now)}
	r.answers = w.given(p.ledger)
	w.reactions[key] = r
	return r
}

// handle passes a message to a voter.
func (w *wordWorld) handle(v *quorum.Voter, m election.Message, now election.Instant) {
	from := holderOf(m).Peer
	switch m := m.(type) {
	case election.VoteRequest:
		v.Request(now, from, m)
	case election.WordWrite:
		v.Keep(now, from, m)
	case election.Release:
		v.Release(now, from, m)
	case election.Report:
		v.Adopt(now, m.Roster, false)
	}
}

// settled returns the index of the voter as it is once all that it has to write is on disk.
func (w *wordWorld) settled(p *process, now election.Instant) uint16 {
	for p.voter.Settle(now); ; p.voter.Settle(now) {
		write := p.ledger.Next(now)
		if write == nil {
			break
		}
		p.ledger.Persisted(write.Write)
	}
	after := p.ledger.State().Clone()
	after.Words = map[election.Name]election.Word{}
	for _, word := range p.ledger.Words() {
		after.Words[word.Election] = word.Word
	}
	return w.voter(after)
}

// given returns the indices of the answers that the voter may send now.
func (w *wordWorld) given(l *quorum.Ledger) (answers []uint16) {
	for _, a := range l.Take() {
		switch a.Message.(type) {
		case election.VoteGrant, election.WordAck:
			answers = append(answers, w.message(a.Message))
		}
	}
	return answers
}

// affect plays one input of a contest, on a copy. The key distinguishes inputs.
func (w *wordWorld) affect(f *process, of uint16, key [3]uint16, input wordInput) effect {
	full := [4]uint16{of, key[0] | uint16(f.roster.Version.Counter)<<8, key[1], key[2]}
	if e, known := w.effects[full]; known {
		return e
	}
	var c *contest.Contest
	if of != 0 {
		c = copied(w.copier, w.contests[of])
	} else {
		lower := election.Grant{Term: election.Term(key[2]) - 1}
		c = w.process(int(key[1]), election.State{Roster: f.roster, Grants: map[election.Name]election.Grant{election.Default: lower}}).contest
		c.Select(chosen{})
		c.Stand(true, 1)
	}
	e, life := effect{}, w.lives[of]
	if key[0] == 6 {
		life = 1
	}
	for _, v := range append(input(c, f), c.Advance(f)) {
		for _, m := range v.Send {
			_, releases := m.Message.(election.Release)
			if e.released = e.released || releases; e.released && !releases {
				continue
			}
			if r, asks := m.Message.(election.VoteRequest); asks {
				r.Send = election.SendID(life)
				m.Message = r
			}
			if n := w.message(m.Message); !slices.Contains(e.sent, n) {
				e.sent = append(e.sent, n)
			}
		}
		for _, a := range v.Announce {
			if a.Event == election.Leading {
				e.elected, e.word = true, a.Word
			}
		}
		e.replies = append(e.replies, v.Replies...)
	}
	n, isNew := w.number("contest", []any{life, c}, len(w.contests))
	if isNew {
		w.contests, w.lives = append(w.contests, c), append(w.lives, life)
	}
	e.contest = n
	w.effects[full] = e
	return e
}

// wordInput is something that happens to a contest.
type wordInput = func(*contest.Contest, contest.Facts) []contest.Verdict

// chosen is a selection that has chosen its agent.
type chosen struct{ contest.Selection }

func (chosen) Tick(election.Instant, election.Field) election.Verdict {
	return election.Verdict{Nominee: true, WakeAt: election.Never}
}
func (chosen) Nominated(election.Field, func(election.PeerID) bool) []election.Envelope { return nil }
func (chosen) Confirmed(election.Field, election.Leadership) []election.Envelope        { return nil }
func (chosen) Stop()                                                                    {}
func (chosen) Active() bool                                                             { return false }
