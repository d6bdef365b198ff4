package exhaustive

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/messages"
)

// WordOptions choose which writes of a word to explore.
type WordOptions struct {
	Terms   []string // what the program of each term does: "writes", "deletes" or "reads"
	Holders int      // how many there are; each may ask for each term
	Loses   bool     // answers of voters may be lost
	Rosters bool     // agents may learn of a newer roster, with the same voters
	Lives   bool     // the agent of a leader may die, and begin a second life with its record
	Slow    bool     // each write of c is a step of its own, and a crash of c loses what c has not written
	States  int      // how many states to visit at most
}

// A wordWorld has three voters and the holders of a few terms in one election. The voters are the
// product's own quorum.Voter and quorum.Ledger, the holders its contest.Contest. Each message that was sent
// may arrive at each voter at any time, in any order, repeatedly, or never; an answer arrives at once or is lost.
// The model has no clock: a voter may grant any higher term, and when a holder is elected, all lower terms
// have ended (G1).
//
// Voters and contests are plain values that react in the same way each time. So each reaction is played once
// and remembered, and a state is only the numbers of its parts.
type wordWorld struct {
	o         WordOptions
	rosters   [2]*election.Roster
	facts     [2][size]*process // of the holders, by roster: all voters can be reached, and time does not pass
	copier    *copier
	encoder   *world
	numbers   map[string]uint16
	voters    []election.State
	contests  []wordContest
	sent      []election.Message
	reactions map[[2]uint16]reaction
	effects   map[[4]uint16]effect
	slow      map[slowVoter]reaction
}

type wordContest struct {
	*contest.Contest
	life uint8 // 0 or 1
}

// wordState is a state of the world, comparable. The numbers are indices.
type wordState struct {
	voters [size]uint16
	queue  [2]uint16 // messages that c has got since it last wrote, with Slow: each one's index and 1; 0: none
	terms  [4]wordTerm
	sent   [2]uint64 // messages that were sent, a bit each; all stay under way
	newest uint8     // the ID of the newest word that a program has got or written
	text   uint8     // the text of that word, an index into texts
}

type wordTerm struct {
	contest uint16 // 0: nobody has asked for the term, or it has ended
	asked   bool
	holder  uint8
	roster  uint8
	leads   bool
	life    uint8
	ordered bool        // the program has asked for its write, in this life
	written [2][2]uint8 // by life: the ID of the word that the program has written, and of the one it named
	names   uint8       // the ID that the write under way names
	told    uint8       // the ID of the word that the program got
}

// reaction is what a voter does with a message, and effect what a contest does with an input.
type (
	reaction struct {
		voter   uint16
		answers []uint16
		writes  bool // a write has begun; false for all voters but the slow one
	}
	effect struct {
		contest  uint16
		sent     []uint16
		elected  bool
		word     election.Word
		replies  []election.Reply
		released bool
	}
)

// second is the bound above which the second life counts, and below which the first one did (W7).
var second = (&election.Config{Life: 1}).FirstNumber()

// short is a rank as one byte: terms, lives and numbers are small here.
func short(r election.WordRank) uint8 {
	return uint8(r.Term)<<4 | uint8(r.Seq/second)<<3 | uint8(r.Seq%second)
}

func long(n uint8) election.WordRank {
	return election.WordRank{Term: election.Term(n >> 4), Seq: uint64(n>>3&1)*second + uint64(n&7)}
}

func newWordWorld(o WordOptions) (*wordWorld, wordState) {
	w := &wordWorld{o: o, copier: newCopier(), encoder: &world{}, numbers: map[string]uint16{}, contests: make([]wordContest, 1),
		reactions: map[[2]uint16]reaction{}, effects: map[[4]uint16]effect{}, slow: map[slowVoter]reaction{}}
	var s wordState
	for r := range w.rosters {
		w.rosters[r] = &election.Roster{Cluster: "x", Version: election.Version{Counter: uint64(r + 1)}, Voters: votersNamed("abc")}
		for i := range size {
			p := w.process(i, election.State{Roster: w.rosters[r]})
			for j := range size {
				p.peers[j].boot = bootOf(j, 0)
			}
			w.facts[r][i] = p
		}
	}
	for i := range size {
		s.voters[i] = w.voter(election.State{Peer: peerOf(i), Roster: w.rosters[0]})
	}
	if o.Rosters {
		s.sent[0] = 1 << w.message(election.Report{Roster: w.rosters[1]})
	}
	return w, s
}

func (w *wordWorld) process(i int, s election.State) *process {
	s.Peer = peerOf(i)
	return newProcess(i, election.Holder{Peer: s.Peer, Lineage: bootOf(i, 0)}, 0, s, epoch, false)
}

// texts are what programs write, by term and life; the first one deletes the word.
var texts = []string{"", "of term 1", "of term 1, life 2", "of term 2", "of term 2, life 2", "of term 3", "of term 3, life 2", "of term 4", "of term 4, life 2"}

// each calls f with each state that may follow.
func (w *wordWorld) each(s wordState, f func(stepTo[wordState])) {
	for t := range w.o.Terms {
		x := s.terms[t]
		if !x.asked {
			w.asks(s, t, f)
			continue
		}
		if at := w.rosterOf(s, x.holder); x.contest != 0 && at != x.roster {
			next := s
			next.terms[t].roster = at
			w.apply(next, t, [3]uint16{5}, func(c *contest.Contest, f contest.Facts) []contest.Verdict {
				return []contest.Verdict{c.Reroster(f)}
			}, func() string { return fmt.Sprintf("the holder of term %d learns of the newer roster", t+1) }, f)
		}
		if !x.leads || x.contest == 0 {
			continue
		}
		if !x.ordered && w.o.Terms[t] != "reads" {
			names := []uint8{x.told, x.written[0][0], 0}
			slices.Sort(names)
			for _, names := range slices.Compact(names) {
				w.orders(s, t, names, f)
			}
		}
		if w.o.Lives && x.life == 0 {
			w.begins(s, t, f)
		}
		if w.o.Terms[t] == "deletes" && x.written[x.life][0] != 0 {
			w.apply(s, t, [3]uint16{3}, func(c *contest.Contest, f contest.Facts) []contest.Verdict {
				v := c.StepDown(f, election.ReasonResigned, "")
				c.Stopped(election.Term(t + 1))
				return []contest.Verdict{v}
			}, func() string { return fmt.Sprintf("term %d is released", t+1) }, f)
		}
	}
	for v, voter := range s.voters {
		for i, bits := range s.sent {
			for b := range 64 {
				switch message := uint16(64*i + b); {
				case bits&(1<<b) == 0:
				case w.o.Slow && v == slowAt:
					w.waits(s, message, f)
				default:
					w.arrives(s, v, voter, message, f)
				}
			}
		}
	}
	if s.queue[0] != 0 {
		w.writes(s, f)
	}
}

// rosterOf is the roster that a holder's agent has on disk.
func (w *wordWorld) rosterOf(s wordState, holder uint8) uint8 {
	return uint8(w.voters[s.voters[holder]].Roster.Version.Counter - 1)
}

// arrives lets a voter handle a message. Its answers reach the holder, or are lost.
func (w *wordWorld) arrives(s wordState, v int, voter, message uint16, f func(stepTo[wordState])) {
	m := w.sent[message]
	r := w.react(voter, message)
	if m, is := m.(election.WordWrite); is && r.voter != voter && m.Version != w.voters[voter].Roster.Version {
		f(stepTo[wordState]{next: s, what: func() string { return messages.Describe(m) }, bad: string(peerOf(v)) + " takes a word at another version"})
		return
	}
	s.voters[v] = r.voter
	w.answers(s, v, r.answers, w.o.Loses && r.voter != voter, func() string { return fmt.Sprintf("%s receives %s", peerOf(v), messages.Describe(m)) }, f)
}

// answers plays one branch for each answer of a voter that reaches its holder, and one in which none arrives, if that may be.
func (w *wordWorld) answers(s wordState, v int, answers []uint16, lost bool, what func() string, f func(stepTo[wordState])) {
	if lost || len(answers) == 0 {
		f(stepTo[wordState]{next: s, what: func() string { return what() + ", and no answer arrives" }})
	}
	for _, a := range answers {
		t := int(termOf(w.sent[a])) - 1
		if s.terms[t].contest == 0 {
			f(stepTo[wordState]{next: s, what: what})
			continue
		}
		w.apply(s, t, [3]uint16{4, a, uint16(v)}, func(c *contest.Contest, f contest.Facts) []contest.Verdict {
			switch m := w.sent[a].(type) {
			case election.VoteGrant:
				return []contest.Verdict{c.VoteGranted(f, peerOf(v), m, epoch, m.Send == election.SendID(s.terms[t].life))}
			case election.WordAck:
				return []contest.Verdict{c.WordKept(f, peerOf(v), m)}
			}
			return nil
		}, func() string { return what() + "; " + messages.Describe(w.sent[a]) }, f)
	}
}

func holderOf(m election.Message) election.Holder {
	switch m := m.(type) {
	case election.VoteRequest:
		return m.Holder
	case election.WordWrite:
		return m.Holder
	case election.Release:
		return m.Holder
	}
	return election.Holder{}
}

func termOf(m election.Message) election.Term {
	if g, is := m.(election.VoteGrant); is {
		return g.Term
	}
	return m.(election.WordAck).Rank.Term
}

// apply plays an input of a term's contest, and judges what follows.
func (w *wordWorld) apply(s wordState, t int, key [3]uint16, input wordInput, what func() string, f func(stepTo[wordState])) {
	x, bad := &s.terms[t], ""
	e := w.affect(w.facts[x.roster][x.holder], x.contest, key, input)
	x.contest = e.contest
	for _, m := range e.sent {
		s.sent[m/64] |= 1 << (m % 64)
	}
	if e.released {
		x.contest, x.leads = 0, false
	}
	if e.elected {
		bad = w.elected(&s, t, e.word)
	}
	for _, r := range e.replies {
		if r.Refusal == nil {
			bad = cmp.Or(bad, w.written(&s, t, r.Word))
		}
	}
	f(stepTo[wordState]{next: s, what: what, bad: bad})
}

// elected ends all lower terms, and judges the word that the program of the new leader gets.
func (w *wordWorld) elected(s *wordState, t int, word election.Word) (bad string) {
	for i := range t {
		s.terms[i].contest, s.terms[i].leads, s.terms[i].asked = 0, false, true
	}
	s.terms[t].leads, s.terms[t].told = true, short(word.ID)
	return s.seen(word)
}

// seen judges a word that a program has got or written: no newer one was got or written before.
func (s *wordState) seen(word election.Word) (bad string) {
	id, text := short(word.ID), uint8(max(0, slices.Index(texts, word.Text)))
	if id < s.newest && !(word == election.Word{} && s.text == 0) || id == s.newest && text != s.text {
		return fmt.Sprintf("a program has %s, though one had %v %q before", messages.Word(word), long(s.newest), texts[s.text])
	}
	s.newest, s.text = max(id, s.newest), text
	return ""
}

// written judges a write that a program knows to be done: the words form a chain (W6).
func (w *wordWorld) written(s *wordState, t int, word election.Word) string {
	x := &s.terms[t]
	id, last := short(word.ID), x.names
	if s.text == 0 && last == 0 { // it replaces the deleted word
		last = s.newest
	}
	x.written[x.life] = [2]uint8{id, last}
	for i, o := range s.terms {
		for _, w := range o.written {
			if w[0] != 0 && (w[0] < id && w[0] > last || w[0] > id && w[1] < id) {
				return fmt.Sprintf("the writes of terms %d and %d replace the same word", t+1, i+1)
			}
		}
	}
	return s.seen(word)
}

// ExploreWords visits the states breadth first.
func ExploreWords(o WordOptions) Found {
	w, first := newWordWorld(o)
	return breadthFirst(first, itself, o.States, w.each, right)
}
