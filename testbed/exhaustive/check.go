package exhaustive

import (
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Violation is a rule that did not hold, with the shortest path to that state.
type Violation struct {
	Rule string
	What string
	Path []string // what happened, from the root on
}

func (v *Violation) Error() string { return v.Rule + ": " + v.What }

func (w *world) fail(rule, format string, args ...any) {
	if w.fault == nil {
		w.fault = &Violation{Rule: rule, What: fmt.Sprintf(format, args...)}
		w.note("VIOLATION of %s", w.fault)
	}
}

// announced checks that the term of each new leadership is above all earlier ones, and so
// belongs to one holder.
func (w *world) announced(i int, x election.Announcement) {
	self := w.holder(i)
	if x.Election != election.Default || x.Leader != self || x.Event != election.Leading && x.Event != election.NewTerm {
		return
	}
	w.poll(i) // first, since an overlap explains more than a term does
	if x.Term <= w.last {
		w.fail("terms rise", "%s leads in term %d, after %s in term %d", self, x.Term, w.leader, w.last)
	}
	w.last, w.leader = x.Term, self
	w.agents[i].leading = true
}

// acts records that a program leads until its deadline, and checks that no program of another
// holder does.
func (w *world) acts(i int, x act) {
	a := &w.agents[i]
	before := a.acts
	a.acts = slices.DeleteFunc(slices.Clone(a.acts), func(y act) bool { return y.holder == x.holder })
	for _, y := range before {
		if y.holder == x.holder {
			x.until = max(x.until, y.until)
		}
	}
	a.acts = append(a.acts, x)
	a.sweep()
	for j := range w.agents {
		b := &w.agents[j]
		for _, y := range b.acts {
			if y.holder != x.holder && b.clock < y.until {
				w.fail("one holder in its lease", "%s leads in term %d while %s has %v left of term %d",
					x.holder, x.term, y.holder, timeOf(y.until-b.clock), y.term)
			}
		}
	}
}

// checkSend checks that a grant is on disk before it is sent.
func (w *world) checkSend(i int, m election.Message) {
	g, ok := m.(election.VoteGrant)
	if !ok {
		return
	}
	if on := w.agents[i].disk.Grants[g.Election]; on.Term != g.Term || on.Holder != g.Holder {
		w.fail("durable before sent", "%s grants term %d to %s, its disk holds %d to %s", peerOf(i), g.Term, g.Holder, on.Term, on.Holder)
	}
}

// checkDisk checks that no promise is taken back.
func (w *world) checkDisk(i int, before, after *election.State) {
	for name, was := range before.Grants {
		is := after.Grants[name]
		if is.Term < was.Term || is.Term == was.Term && (is.Holder != was.Holder || was.Released && !is.Released) {
			w.fail("promises on disk", "%s: %s goes from %+v to %+v", peerOf(i), name, was, is)
		}
	}
}
