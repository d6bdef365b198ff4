package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/messages"
)

// maxWritten bounds the words that the programs of one seed write.
const maxWritten = 300

// scribe makes the programs of leaders write words, and checks by the IDs of words what leaders
// read (G8). It makes its own draws, so that a seed gives the same plan with and without it.
type scribe struct {
	w        *world
	rng      *rand.Rand
	interval time.Duration
	asked    map[election.RequestID]*writing
	texts    map[string]*writing
	settled  map[*contestLog][]*writing // words that a leader has read, or whose writer had an answer; sorted by ID
	known    map[*agent]map[election.Name]election.WordRank
	deleted  map[*contestLog]map[election.WordRank]bool // IDs of words that programs have asked to delete
	gone     map[*contestLog]election.WordRank          // the newest word that voters are known to have forgotten
	history  wordHistory
}

// writing is a program's request to write a word.
type writing struct {
	election.WriteWord
	host   *agent
	life   uint32
	log    *contestLog
	called int64
	id     election.WordRank // zero until it is known that the word was written
	until  int64             // when the ID was first known
}

func newScribe(w *world) *scribe {
	return &scribe{w: w, rng: rand.New(rand.NewPCG(w.options.Seed, 0x776f726473+w.options.Shrunk.Variation<<40)),
		interval: (w.plan.calm + w.plan.chaos) / maxWritten, asked: map[election.RequestID]*writing{}, texts: map[string]*writing{},
		settled: map[*contestLog][]*writing{}, known: map[*agent]map[election.Name]election.WordRank{},
		deleted: map[*contestLog]map[election.WordRank]bool{}, gone: map[*contestLog]election.WordRank{},
		history: wordHistory{operations: map[*contestLog][]porcupine.Operation{}}}
}

// writes makes the program of a leader, if there is one, write a word now and then.
func (s *scribe) writes(n int) {
	w := s.w
	if !w.plan.words || n == 0 {
		return
	}
	w.after(around(s.rng, s.interval), func() { s.writes(n - 1) })
	name := w.plan.elections[s.rng.IntN(len(w.plan.elections))]
	none := s.rng.IntN(8) == 0 // the program claims that there is no word yet
	i := slices.IndexFunc(w.agents, func(a *agent) bool {
		return a.alive && a.paused == 0 && a.frozen == 0 && a.own == nil && a.leads(name) != nil
	})
	if i < 0 {
		return
	}
	a := w.agents[i]
	c := a.leads(name)
	q := &writing{host: a, life: a.life, log: w.log(a, name), called: w.Now, WriteWord: election.WriteWord{Election: name, Term: c.Term,
		If: s.known[a][name], Text: fmt.Sprintf("word %d of %s", n, a.name), Request: w.request()}}
	if none {
		q.If = election.WordRank{}
	}
	if s.rng.IntN(4) == 0 { // it deletes the word (W11)
		q.Text = ""
		if s.deleted[q.log] == nil {
			s.deleted[q.log] = map[election.WordRank]bool{}
		}
		s.deleted[q.log][q.If] = true
	} else {
		s.texts[q.Text] = q
	}
	s.asked[q.Request] = q
	w.input(a, q.WriteWord)
}

// knows records which word the programs of that agent know.
func (s *scribe) knows(a *agent, name election.Name, id election.WordRank) {
	if s.known[a] == nil {
		s.known[a] = map[election.Name]election.WordRank{}
	}
	s.known[a][name] = id
}

// answered judges the answer to a program's request.
func (s *scribe) answered(r election.Reply) {
	w := s.w
	q := s.asked[r.Request]
	if q == nil {
		return
	}
	delete(s.asked, r.Request)
	s.history.wrote(q, r, w.Now)
	switch {
	case r.Refusal == nil && r.Word.Text != q.Text:
		w.fail("G8", "%s gets the answer that its word %q was written, and that the word is %s", q.host.peer, q.Text, messages.Word(r.Word))
	case r.Refusal == nil || r.Refusal.Why == election.DeniedWordChanged || r.Refusal.Why == election.DeniedWordRemains:
		switch {
		case r.Refusal == nil && q.Text == "":
			w.stats.Deleted++
		case r.Refusal == nil:
			w.stats.Words++
		}
		s.knows(q.host, q.Election, r.Word.ID)
		s.settle(q.log, r.Word)
	}
}

// elected checks the word that a leader reads when it is elected. No newer word may exist that a
// leader has read, or whose writer had an answer.
func (s *scribe) elected(a *agent, x election.Announcement) {
	w := s.w
	l := w.log(a, x.Election)
	if !w.plan.words || l == nil || a.own != nil {
		return
	}
	s.history.read(l, x.Word, w.Now)
	s.settle(l, x.Word)
	if all := s.settled[l]; len(all) > 0 {
		newest := all[len(all)-1]
		switch {
		case x.Word == (election.Word{}) && (newest.Text == "" || s.deleted[l][newest.id]):
			s.gone[l], s.settled[l] = newest.id, nil
		case x.Word.ID.Compare(newest.id) < 0:
			w.fail("G8", "%s is elected in term %d and reads %s, though %q was settled before", a.peer, x.Term, messages.Word(x.Word), newest.Text)
		}
	}
	s.knows(a, x.Election, x.Word.ID)
}

// settle records that the word was written: from now on it may be replaced, but must not be lost.
// It checks that the words form a chain, in which each names the one that it replaces (W6). A
// word must come after all words that were settled before it was asked for.
func (s *scribe) settle(l *contestLog, word election.Word) {
	if word == (election.Word{}) {
		return
	}
	w := s.w
	q := s.texts[word.Text]
	if word.Text == "" { // a deletion has no text that identifies its request, so that request is not checked
		if slices.ContainsFunc(s.settled[l], func(x *writing) bool { return x.id == word.ID }) || word.ID.Compare(s.gone[l]) <= 0 {
			return
		}
		q = &writing{log: l, WriteWord: election.WriteWord{If: word.ID}}
	}
	switch {
	case word.ID.Compare(s.gone[l]) <= 0:
		w.fail("G8", "the word %s is back, though voters had forgotten it", messages.Word(word))
		return
	case q == nil || q.log != l:
		w.fail("G8", "nobody wrote the word %s of %s", messages.Word(word), l.name)
		return
	case q.id == word.ID:
		return
	case q.id != (election.WordRank{}):
		w.fail("G8", "the word %q has two IDs: %s, and before term %d", word.Text, messages.Word(word), q.id.Term)
		return
	}
	q.id, q.until = word.ID, w.Now
	all := s.settled[l]
	at, _ := slices.BinarySearchFunc(all, q, func(a, b *writing) int { return a.id.Compare(b.id) })
	all = slices.Insert(all, at, q)
	s.settled[l] = all
	for i, x := range all {
		switch {
		case i < at && x.id.Compare(q.If) > 0, i > at && x.If.Compare(q.id) < 0:
			w.fail("G8", "%q and %q replace the same word", q.Text, x.Text)
		case i < at && q.until < x.called, i > at && x.until < q.called:
			w.fail("G8", "%q and %q are not in the order in which they were asked for", q.Text, x.Text)
		}
	}
}
