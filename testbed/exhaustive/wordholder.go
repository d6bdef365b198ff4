package exhaustive

import (
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
)

// This file has what the holder of a term does of its own accord in a wordWorld.

// asks lets each holder without a higher term ask for a term. Holders are alike, so the first to ask is always a.
func (w *wordWorld) asks(s wordState, t int, f func(stepTo[wordState])) {
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
		next.terms[t] = wordTerm{asked: true, holder: uint8(h), roster: w.rosterOf(s, uint8(h))}
		w.apply(next, t, [3]uint16{1, uint16(h), uint16(t + 1)}, func(*contest.Contest, contest.Facts) []contest.Verdict { return nil },
			func() string { return fmt.Sprintf("%s asks for term %d", peerOf(h), t+1) }, f)
	}
}

// begins lets a leader's agent die, and begin its second life with what the first one left on record. Its
// program goes on, and may write once more.
func (w *wordWorld) begins(s wordState, t int, f func(stepTo[wordState])) {
	x := &s.terms[t]
	x.life, x.ordered = 1, false
	w.apply(s, t, [3]uint16{6}, func(c *contest.Contest, f contest.Facts) []contest.Verdict {
		p := f.(*process)
		next := newProcess(int(x.holder), p.self, 1, election.State{Peer: p.self.Peer, Roster: p.roster}, epoch, false)
		next.goOn(1, c.Authority())
		*c = *next.contest
		c.Select(chosen{})
		return []contest.Verdict{c.Resumed(f)}
	}, func() string { return fmt.Sprintf("the agent that leads term %d begins its second life", t+1) }, f)
}

// orders lets the program of a term ask to replace the word whose ID is names.
func (w *wordWorld) orders(s wordState, t int, names uint8, f func(stepTo[wordState])) {
	text := ""
	if w.o.Terms[t] == "writes" {
		text = texts[1+2*t+int(s.terms[t].life)]
	}
	s.terms[t].ordered, s.terms[t].names = true, names
	w.apply(s, t, [3]uint16{2, uint16(names)}, func(c *contest.Contest, f contest.Facts) []contest.Verdict {
		v, _ := c.WriteWord(f, election.WriteWord{Election: election.Default, Term: election.Term(t + 1), If: long(names), Text: text}, nil)
		return []contest.Verdict{v}
	}, func() string { return fmt.Sprintf("the program of term %d replaces %v by %q", t+1, long(names), text) }, f)
}
