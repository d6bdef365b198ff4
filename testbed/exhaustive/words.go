package exhaustive

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/testbed/messages"
)

// WordOptions choose which writes of a word to explore.
type WordOptions struct {
	Terms   []string // what the program of each term does: "writes", "deletes" or "reads"
	Holders int      // how many there are; each may ask for each term
	Loses   bool     // answers of voters may be lost
	States  int      // how many states to visit at most
}

// A wordWorld has three voters and the holders of a few terms in one election. The voters are the
// product's own quorum.Voter and quorum.Ledger, the holders its contest.Contest. Each message that was sent
// may arrive at each voter at any time, in any order, repeatedly, or never; an answer arrives at once or is lost.
// There is no time: a voter may grant any higher term, and when a holder is elected, all lower terms
// have ended (G1).
//
// Both parts are plain values that react in the same way each time. So each reaction is played once
// and remembered, and a state is only the numbers of its parts.
type wordWorld struct {
	o         WordOptions
	roster    *election.Roster
	cfg       [3]election.Config // of the holders
	copier    *copier
	encoder   *world
	numbers   map[string]uint16
	voters    []election.State
	contests  []*contest.Contest
	sent      []election.Message
	reactions map[[3]uint16]reaction
	effects   map[[4]uint16]effect
}

// wordState is a state of the world, comparable. The numbers are indices.
type wordState struct {
	voters [3]uint16
	terms  [4]wordTerm
	sent   [2]uint64 // messages under way, a bit each
	newest uint8     // the ID of the newest word that a program has got or written
	empty  bool      // that word is empty
}

type wordTerm struct {
	contest  uint16 // 0: nobody has asked for the term, or it has ended
	asked    bool
	holder   uint8
	leads    bool
	ordered  bool  // the program has asked for its write
	id, last uint8 // of the word that the program has written, and of the one it named
	names    uint8 // the ID that the write under way names
	told     uint8 // the ID of the word that the program got
}

// reaction is what a voter does with a message, and effect what a contest does with an input.
type (
	reaction struct {
		voter   uint16
		answers []uint16
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

var wordVoters = [3]election.PeerID{"u", "v", "w"}

// short is a rank as one byte: terms and numbers are small here.
func short(r election.WordRank) uint8 { return uint8(r.Term)<<4 | uint8(r.Seq) }

func long(n uint8) election.WordRank {
	return election.WordRank{Term: election.Term(n >> 4), Seq: uint64(n & 15)}
}

func newWordWorld(o WordOptions) (*wordWorld, wordState) {
	w := &wordWorld{o: o, copier: newCopier(), encoder: &world{}, numbers: map[string]uint16{}, contests: []*contest.Contest{nil},
		roster:    &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}, Voters: votersNamed("uvw")},
		reactions: map[[3]uint16]reaction{}, effects: map[[4]uint16]effect{}}
	for i := range w.cfg {
		w.cfg[i] = election.Config{Quorum: true, Self: leaseHolderOf(i), Timing: timing, Drift: drift}
	}
	var s wordState
	for i, p := range wordVoters {
		s.voters[i] = w.voter(election.State{Peer: p, Roster: w.roster})
	}
	return w, s
}

// number returns the index of a value, by all that it holds.
func (w *wordWorld) number(kind string, value any, next int) (n uint16, isNew bool) {
	key := kind + string(w.encoder.append(nil, 0, reflect.ValueOf(value)))
	if n, known := w.numbers[key]; known {
		return n, false
	}
	w.numbers[key] = uint16(next)
	return uint16(next), true
}

func (w *wordWorld) voter(s election.State) uint16 {
	n, isNew := w.number("voter", []any{s.Peer, s.Grants, s.Words, s.Forgotten}, len(w.voters))
	if isNew {
		w.voters = append(w.voters, s)
	}
	return n
}

func (w *wordWorld) message(m election.Message) uint16 {
	n, isNew := w.number(reflect.TypeOf(m).Name(), []any{m}, len(w.sent))
	if isNew {
		w.sent = append(w.sent, m)
	}
	return n
}

// react lets a voter handle a message, when all its promises have ended.
func (w *wordWorld) react(voter, message uint16, from election.PeerID) reaction {
	key := [3]uint16{voter, message}
	if r, known := w.reactions[key]; known {
		return r
	}
	s := w.voters[voter]
	ledger := quorum.NewLedger(s, timing.Lease)
	v := quorum.NewVoter(election.Config{Quorum: true, Self: election.Holder{Peer: s.Peer}, Timing: timing, Drift: drift}, ledger, epoch)
	now := epoch.Add(time.Hour)
	switch m := w.sent[message].(type) {
	case election.VoteRequest:
		v.Request(now, from, m)
	case election.WordWrite:
		v.Keep(now, from, m)
	case election.Release:
		v.Release(now, from, m)
	}
	for v.Settle(now); ; v.Settle(now) {
		p := ledger.Next(now)
		if p == nil {
			break
		}
		ledger.Persisted(p.Write)
	}
	after := ledger.State().Clone()
	after.Words = map[election.Name]election.Word{}
	for _, word := range ledger.Words() {
		after.Words[word.Election] = word.Word
	}
	r := reaction{voter: w.voter(after)}
	for _, a := range ledger.Take() {
		switch a.Message.(type) {
		case election.VoteGrant, election.WordAck:
			r.answers = append(r.answers, w.message(a.Message))
		}
	}
	w.reactions[key] = r
	return r
}

// affect plays one input of a contest, on a copy. The key distinguishes inputs.
func (w *wordWorld) affect(of uint16, key [3]uint16, input func(*contest.Contest) []contest.Verdict) effect {
	full := [4]uint16{of, key[0], key[1], key[2]}
	if e, known := w.effects[full]; known {
		return e
	}
	var c *contest.Contest
	if of != 0 {
		c = copied(w.copier, w.contests[of])
	} else {
		holder, term := int(key[1]), election.Term(key[2])
		c = contest.New("e", &w.cfg[holder], &contest.Counts{}, chosen{}, term-1, 0)
		c.Stand(true, 1)
	}
	e := effect{}
	for _, v := range append(input(c), c.Advance(wordFacts{w})) {
		for _, m := range v.Send {
			_, releases := m.Message.(election.Release)
			if e.released = e.released || releases; e.released && !releases {
				continue
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
	n, isNew := w.number("contest", c, len(w.contests))
	if isNew {
		w.contests = append(w.contests, c)
	}
	e.contest = n
	w.effects[full] = e
	return e
}

// wordStep is a state that follows, and how. what is only called for a path.
type wordStep struct {
	next wordState
	what func() string
	bad  string
}

// each calls f with each state that may follow.
func (w *wordWorld) each(s wordState, f func(wordStep)) {
	for t := range w.o.Terms {
		x := s.terms[t]
		if !x.asked {
			w.asks(s, t, f)
			continue
		}
		if !x.leads || x.contest == 0 {
			continue
		}
		if !x.ordered && w.o.Terms[t] != "reads" {
			for _, names := range slices.Compact([]uint8{x.told, 0}) {
				w.orders(s, t, names, f)
			}
		}
		if w.o.Terms[t] == "deletes" && x.id != 0 {
			w.apply(s, t, [3]uint16{3}, func(c *contest.Contest) []contest.Verdict {
				v := c.StepDown(wordFacts{w}, election.ReasonResigned, "")
				c.Stopped(election.Term(t + 1))
				return []contest.Verdict{v}
			}, func() string { return fmt.Sprintf("term %d is released", t+1) }, f)
		}
	}
	for v, voter := range s.voters {
		for i, bits := range s.sent {
			for b := range 64 {
				if bits&(1<<b) != 0 {
					w.arrives(s, v, voter, uint16(64*i+b), f)
				}
			}
		}
	}
}

// asks lets each holder ask for a term, if it has asked for no higher one. Holders are alike: the first to ask is a.
func (w *wordWorld) asks(s wordState, t int, f func(wordStep)) {
	used := 0
	for _, x := range s.terms {
		if x.asked {
			used = max(used, int(x.holder)+1)
		}
	}
	for h := range min(w.o.Holders, used+1) {
		if slices.ContainsFunc(s.terms[t+1:], func(x wordTerm) bool { return x.asked && int(x.holder) == h }) {
			continue
		}
		next := s
		next.terms[t] = wordTerm{asked: true, holder: uint8(h)}
		w.apply(next, t, [3]uint16{1, uint16(h), uint16(t + 1)}, func(*contest.Contest) []contest.Verdict { return nil },
			func() string { return fmt.Sprintf("%s asks for term %d", leaseHolderOf(h).Peer, t+1) }, f)
	}
}

// orders lets the program of a term replace the word, if it is the named one.
func (w *wordWorld) orders(s wordState, t int, names uint8, f func(wordStep)) {
	text := ""
	if w.o.Terms[t] == "writes" {
		text = fmt.Sprintf("of term %d", t+1)
	}
	s.terms[t].ordered, s.terms[t].names = true, names
	w.apply(s, t, [3]uint16{2, uint16(names)}, func(c *contest.Contest) []contest.Verdict {
		v, _ := c.WriteWord(wordFacts{w}, election.WriteWord{Election: "e", Term: election.Term(t + 1), If: long(names), Text: text})
		return []contest.Verdict{v}
	}, func() string { return fmt.Sprintf("the program of term %d replaces %v by %q", t+1, long(names), text) }, f)
}

// arrives lets a voter handle a message. Its answers reach the holder, or are lost.
func (w *wordWorld) arrives(s wordState, v int, voter, message uint16, f func(wordStep)) {
	m := w.sent[message]
	r := w.react(voter, message, holderOf(m).Peer)
	s.voters[v] = r.voter
	what := func() string { return fmt.Sprintf("%s receives %s", wordVoters[v], messages.Describe(m)) }
	if w.o.Loses && r.voter != voter || len(r.answers) == 0 {
		f(wordStep{next: s, what: func() string { return what() + ", and no answer arrives" }})
	}
	for _, a := range r.answers {
		t := int(termOf(w.sent[a])) - 1
		if s.terms[t].contest == 0 {
			f(wordStep{next: s, what: what})
			continue
		}
		w.apply(s, t, [3]uint16{4, a, uint16(v)}, func(c *contest.Contest) []contest.Verdict {
			switch m := w.sent[a].(type) {
			case election.VoteGrant:
				return []contest.Verdict{c.VoteGranted(wordFacts{w}, wordVoters[v], m, epoch, true)}
			case election.WordAck:
				return []contest.Verdict{c.WordKept(wordFacts{w}, wordVoters[v], m)}
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
func (w *wordWorld) apply(s wordState, t int, key [3]uint16, input func(*contest.Contest) []contest.Verdict, what func() string, f func(wordStep)) {
	e := w.affect(s.terms[t].contest, key, input)
	x, bad := &s.terms[t], ""
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
	f(wordStep{next: s, what: what, bad: bad})
}

// elected judges the word that a program gets. All lower terms have ended.
func (w *wordWorld) elected(s *wordState, t int, word election.Word) (bad string) {
	for i := range t {
		s.terms[i].contest, s.terms[i].leads, s.terms[i].asked = 0, false, true
	}
	s.terms[t].leads, s.terms[t].told = true, short(word.ID)
	return s.seen(word)
}

// seen judges a word that a program has got or written: no newer one was got or written before.
func (s *wordState) seen(word election.Word) (bad string) {
	id := short(word.ID)
	if id < s.newest && !(word == election.Word{} && s.empty) {
		return fmt.Sprintf("a program has %s, though one had %v before", messages.Word(word), long(s.newest))
	}
	if id > s.newest {
		s.newest, s.empty = id, word.Text == ""
	}
	return ""
}

// written judges a write that a program knows to be done: the words form a chain (W6).
func (w *wordWorld) written(s *wordState, t int, word election.Word) string {
	x := &s.terms[t]
	x.id, x.last = short(word.ID), x.names
	if s.empty && x.last == 0 { // it replaces the deleted word
		x.last = s.newest
	}
	for i, o := range s.terms {
		if i != t && o.id != 0 && (o.id < x.id && o.id > x.last || o.id > x.id && o.last < x.id) {
			return fmt.Sprintf("the writes of terms %d and %d replace the same word", t+1, i+1)
		}
	}
	return s.seen(word)
}

// ExploreWords visits the states breadth first.
func ExploreWords(o WordOptions) Found {
	type node struct {
		state  wordState
		parent int
	}
	w, first := newWordWorld(o)
	nodes, seen := []node{{first, -1}}, map[wordState]struct{}{first: {}}
	r := Found{States: 1}
	path := func(i int, last string) []string {
		lines := []string{last}
		for ; nodes[i].parent >= 0; i = nodes[i].parent {
			line := ""
			w.each(nodes[nodes[i].parent].state, func(n wordStep) {
				if line == "" && n.next == nodes[i].state {
					line = n.what()
				}
			})
			lines = append(lines, line)
		}
		slices.Reverse(lines)
		return lines
	}
	for end, i := 1, 0; i < len(nodes); i++ {
		if i == end {
			end = len(nodes)
			r.Depth++
		}
		full := false
		w.each(nodes[i].state, func(n wordStep) {
			if r.Violation != nil || full {
				return
			}
			if n.bad != "" {
				r.Violation, r.Path = fmt.Errorf("%s", n.bad), path(i, n.what())
				return
			}
			if _, known := seen[n.next]; !known {
				seen[n.next] = struct{}{}
				nodes = append(nodes, node{n.next, i})
				r.States++
				full = r.States >= o.States
			}
		})
		if r.Violation != nil || full {
			return r
		}
	}
	r.Complete = true
	return r
}
