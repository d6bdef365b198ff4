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

// numbered returns the index of a value in a list. It appends the value if its key is new. room is how many there can be.
func numbered[T any](numbers map[string]uint16, room int, key string, all *[]T, value T) uint16 {
	n, known := numbers[key]
	if !known {
		if len(*all) == room {
			panic("the world is too large: its parts have no numbers left")
		}
		n = uint16(len(*all))
		numbers[key], *all = n, append(*all, value)
	}
	return n
}

const (
	manyParts = math.MaxUint16
	maxSent   = 128 // messages: a state has a bit for each
)

func (w *wordWorld) key(kind string, value any) string {
	return kind + string(w.encoder.append(nil, 0, reflect.ValueOf(value)))
}

func (w *wordWorld) voter(s election.State) uint16 {
	return numbered(w.numbers, manyParts, w.key("voter", []any{s.Peer, s.Roster.Version, s.Grants, s.Words, s.Forgotten}), &w.voters, s)
}

func (w *wordWorld) message(m election.Message) uint16 {
	r, _ := m.(election.VoteRequest)
	return numbered(w.numbers, maxSent, w.key(reflect.TypeOf(m).Name(), []any{m, r.Roster.Version}), &w.sent, m)
}

// react lets a voter handle a message, when all its promises have ended.
func (w *wordWorld) react(voter, message uint16) reaction {
	key := [2]uint16{voter, message}
	if r, known := w.reactions[key]; known {
		return r
	}
	p, now := w.process(indexOf(w.voters[voter].Peer), w.voters[voter]), epoch.Add(time.Hour)
	handle(p.voter, holderOf(w.sent[message]).Peer, w.sent[message], now, false)
	r := reaction{voter: w.voter(settled(p.voter, p.ledger, now))}
	r.answers = w.given(p.ledger)
	w.reactions[key] = r
	return r
}

// handle passes a message to a voter. keep is whether the voter keeps its roster beside a newer one that is reported.
func handle(v *quorum.Voter, from election.PeerID, m election.Message, now election.Instant, keep bool) {
	switch m := m.(type) {
	case election.VoteRequest:
		v.Request(now, from, m)
	case election.WordWrite:
		v.Keep(now, from, m)
	case election.Release:
		v.Release(now, from, m)
	case election.Report:
		v.Adopt(now, m.Roster, keep)
	case election.RosterPropose:
		v.Propose(now, from, m)
	case election.Words:
		v.Read(from, m)
	}
}

// settled writes all that a voter has to write, and returns what is on its disk then.
func settled(v *quorum.Voter, l *quorum.Ledger, now election.Instant) election.State {
	for v.Settle(now); ; v.Settle(now) {
		write := l.Next(now)
		if write == nil {
			break
		}
		l.Persisted(write.Write)
	}
	after := l.State().Clone()
	after.Words = map[election.Name]election.Word{}
	for _, word := range l.Words() {
		after.Words[word.Election] = word.Word
	}
	return after
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
		c = copied(w.copier, w.contests[of].Contest)
	} else {
		lower := election.Grant{Term: election.Term(key[2]) - 1}
		c = w.process(int(key[1]), election.State{Roster: f.roster, Grants: map[election.Name]election.Grant{election.Default: lower}}).contest
		c.Select(chosen{})
		c.Stand(true, 1)
	}
	e, life := effect{}, w.contests[of].life
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
	e.contest = numbered(w.numbers, manyParts, w.key("contest", []any{life, c}), &w.contests, wordContest{c, life})
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
