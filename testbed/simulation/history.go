package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/messages"
)

// open is the end of what has not ended.
const open int64 = -1

// maxArrows bounds the messages a History keeps; what comes later is counted in
// none.
const maxArrows = 200_000

// History is what a person may want to see of a run: who was up, who led, what
// was sent, and what went wrong, in true time.
type History struct {
	seed   uint64
	plan   plan
	lanes  []string // of the agents
	lives  []span
	pauses []span
	bars   []bar
	arrows []arrow
	marks  []mark
	ended  int64
}

// span is a time of one agent's.
type span struct {
	lane     int
	from, to int64
	text     string
}

// bar is a leadership: an agent's claim, or a program's acting on it.
type bar struct {
	span
	kind     actorKind
	election election.Name
	term     election.Term
	holder   string
	lease    int64 // when it ends, as was told last
}

// arrow is a message. Index 0 is none.
type arrow struct {
	from, to   int
	sent, came int64
	what       string
	detail     string
	lost       bool
	quiet      bool // a heartbeat or its acknowledgement
}

// markKind is what a mark is about.
type markKind uint8

const (
	noteMark markKind = iota
	textMark          // shown otherwise: only its text is of interest
	faultMark
	leaderMark
	violationMark
)

// mark is something that happened at once. Lane -1 is nobody's.
type mark struct {
	lane int
	at   int64
	kind markKind
	text string
}

func newHistory(w *world) *History {
	h := &History{seed: w.options.Seed, plan: w.plan, arrows: make([]arrow, 1)}
	for _, a := range w.agents {
		h.lanes = append(h.lanes, string(a.peer))
	}
	return h
}

// finish ends what has not ended.
func (h *History) finish(w *world) {
	if h == nil {
		return
	}
	h.ended = w.Now
	for _, spans := range [][]span{h.lives, h.pauses} {
		for i := range spans {
			if spans[i].to == open {
				spans[i].to = w.Now
			}
		}
	}
	for i := range h.bars {
		if b := &h.bars[i]; b.to == open {
			b.to = min(b.lease, w.Now)
		}
	}
}

func (w *world) starting(a *agent) {
	if h := w.history; h != nil {
		h.lives = append(h.lives, span{lane: a.id, from: w.Now, to: open, text: election.Holder{Peer: a.peer, Boot: a.boot}.String()})
	}
}

func (w *world) stopping(a *agent) {
	if w.history != nil {
		closeSpan(w.history.lives, a.id, w.Now)
		closeSpan(w.history.pauses, a.id, w.Now)
	}
}

func (w *world) pausing(a *agent) {
	if h := w.history; h != nil && a.paused == 1 {
		h.pauses = append(h.pauses, span{lane: a.id, from: w.Now, to: open})
	}
}

func (w *world) resuming(a *agent) {
	if w.history != nil {
		closeSpan(w.history.pauses, a.id, w.Now)
	}
}

// closeSpan ends the lane's newest, if it has not ended.
func closeSpan(spans []span, lane int, at int64) {
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].lane == lane {
			if spans[i].to == open {
				spans[i].to = at
			}
			return
		}
	}
}

func (w *world) leads(l *contestLog, x *actor) {
	h := w.history
	if h == nil {
		return
	}
	h.bars = append(h.bars, bar{span: span{lane: x.host.id, from: w.Now, to: open}, kind: x.kind, election: l.name,
		term: x.term, holder: x.holder.String(), lease: x.host.clock.when(x.until)})
	x.bar = len(h.bars)
}

func (w *world) leadsOn(x *actor) {
	if w.history == nil || x.bar == 0 {
		return
	}
	b := &w.history.bars[x.bar-1]
	b.lease = x.host.clock.when(x.until)
	if x.term == b.term {
		return
	}
	b.to = w.Now // the same leader goes on in a higher term
	next := *b
	next.from, next.to, next.term = w.Now, open, x.term
	w.history.bars = append(w.history.bars, next)
	x.bar = len(w.history.bars)
}

func (w *world) leadsNoMore(x *actor) {
	if w.history != nil && x.bar > 0 {
		b := &w.history.bars[x.bar-1]
		b.to = min(w.Now, b.lease)
	}
}

// sending returns the arrow of a message that is being sent.
func (w *world) sending(a, b *agent, m election.Message) int {
	h := w.history
	if h == nil || len(h.arrows) >= maxArrows {
		return 0
	}
	h.arrows = append(h.arrows, arrow{from: a.id, to: b.id, sent: w.Now, came: open, what: messages.Brief(m), detail: messages.Describe(m), quiet: routine(m)})
	return len(h.arrows) - 1
}

// repeating returns the arrow of the second copy of a message.
func (w *world) repeating(i int) int {
	h := w.history
	if h == nil || i == 0 || len(h.arrows) >= maxArrows {
		return 0
	}
	again := h.arrows[i]
	again.what += " (repeated)"
	h.arrows = append(h.arrows, again)
	return len(h.arrows) - 1
}

func (w *world) losing(i int) {
	if i > 0 {
		w.history.arrows[i].lost = true
		w.history.arrows[i].came = w.Now
	}
}

func (w *world) arriving(e flight) {
	if e.arrow > 0 {
		w.history.arrows[e.arrow].came = w.Now
	}
}

func (w *world) mark(lane int, kind markKind, text string) {
	if h := w.history; h != nil {
		h.marks = append(h.marks, mark{lane: lane, at: w.Now, kind: kind, text: text})
	}
}

func (w *world) noting(a *agent, text string) {
	lane := -1
	if a != nil {
		lane = a.id
	}
	if !strings.HasPrefix(text, "VIOLATION") && !strings.HasPrefix(text, "seed ") {
		kind := noteMark
		if lane >= 0 && (strings.HasPrefix(text, "STARTS") || strings.HasPrefix(text, "STOPS")) {
			kind = textMark
		}
		w.mark(lane, kind, text)
	}
}

func (w *world) striking(i int, name string) {
	w.mark(-1, faultMark, fmt.Sprintf("fault %d: %s", i, name))
}

func (w *world) violating(rule, what string) {
	w.mark(-1, violationMark, rule+": "+what)
}

func (w *world) announcing(a *agent, x election.Announcement) {
	if w.history == nil {
		return
	}
	text := ""
	switch x.Event {
	case election.Leading:
		text = fmt.Sprintf("LEADS %s in term %d (%s)", x.Election, x.Term, x.Reason)
	case election.Following:
		text = fmt.Sprintf("follows %s in %s, term %d", x.Leader.Peer, x.Election, x.Term)
	case election.NewTerm:
		text = fmt.Sprintf("%s leads %s on, in term %d", x.Leader.Peer, x.Election, x.Term)
	case election.NoLeader:
		text = fmt.Sprintf("knows no leader of %s after term %d (%s)", x.Election, x.Term, x.Reason)
	}
	w.mark(a.id, leaderMark, text)
}

// routine reports whether a message is one of those that are sent all the time.
func routine(m election.Message) bool {
	switch m := m.(type) {
	case election.Heartbeat:
		return true
	case election.HeartbeatAck:
		return !slices.ContainsFunc(m.Nacks, func(n election.Nack) bool { return n.Term > 0 })
	case election.Report:
		return m.ID == 0
	}
	return false
}

// at writes a true time for a person.
func at(t int64) string { return fmt.Sprintf("%.3f s", time.Duration(t).Seconds()) }
