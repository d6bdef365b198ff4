package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/messages"
	"github.com/doyen-election/doyen/testbed/spacetime"
)

// maxArrows bounds the messages that a History keeps. Later messages are dropped.
const maxArrows = 200_000

// History is what a person may want to see of a run, in true time: which agents were up, which
// led, what was sent, and what went wrong. Its first arrow is a placeholder.
type History struct {
	spacetime.Diagram
	plan plan
}

func newHistory(w *world) *History {
	h := &History{plan: w.plan}
	h.Title, h.Slow, h.Arrows = fmt.Sprintf("Seed %d", w.options.Seed), w.plan.timing.Heartbeat, make([]spacetime.Arrow, 1)
	h.Lanes = each.Of(w.agents, func(a *agent) string { return string(a.peer) })
	return h
}

// finish closes the pauses and bars that are still open. It leaves the lives of agents open,
// because their processes have not ended.
func (h *History) finish(w *world) {
	if h == nil {
		return
	}
	h.To = w.now()
	for i := range h.Pauses {
		if h.Pauses[i].To == spacetime.Never {
			h.Pauses[i].To = h.To
		}
	}
	for i := range h.Bars {
		if b := &h.Bars[i]; b.To == spacetime.Never {
			b.To = min(b.Lease, h.To)
		}
	}
}

func (w *world) now() time.Duration { return time.Duration(w.Now) }

func (w *world) starting(a *agent) {
	if h := w.history; h != nil {
		h.Lives = append(h.Lives, spacetime.Span{Lane: a.id, From: w.now(), To: spacetime.Never, Text: a.holder().String()})
	}
}

func (w *world) stopping(a *agent) {
	if w.history != nil {
		closeSpan(w.history.Lives, a.id, w.now())
		closeSpan(w.history.Pauses, a.id, w.now())
	}
}

func (w *world) pausing(a *agent) {
	if h := w.history; h != nil && a.paused == 1 {
		h.Pauses = append(h.Pauses, spacetime.Span{Lane: a.id, From: w.now(), To: spacetime.Never})
	}
}

func (w *world) resuming(a *agent) {
	if w.history != nil {
		closeSpan(w.history.Pauses, a.id, w.now())
	}
}

func closeSpan(spans []spacetime.Span, lane int, at time.Duration) {
	for i := range slices.Backward(spans) {
		if spans[i].Lane == lane {
			if spans[i].To == spacetime.Never {
				spans[i].To = at
			}
			return
		}
	}
}

// leads begins a bar: of an agent's leadership, or of a program that acts.
func (w *world) leads(l *contestLog, x *actor) {
	if w.history != nil {
		w.history.Bars = append(w.history.Bars, w.bar(l, x))
		x.bar = len(w.history.Bars)
	}
}

func (w *world) bar(l *contestLog, x *actor) spacetime.Bar {
	b := spacetime.Bar{Label: fmt.Sprintf("T%d", x.term), Row: l.index, Acts: x.kind != claimer, Lease: time.Duration(x.host.clock.when(x.until))}
	if b.Row != 0 {
		b.Label = string(l.name) + " " + b.Label
	}
	if l.name == election.RosterElection {
		b.Row = 3
	}
	b.Span = spacetime.Span{Lane: x.host.id, From: w.now(), To: spacetime.Never, Text: fmt.Sprintf("%s leads %s in term %d", x.holder, l.name, x.term)}
	if b.Acts {
		b.Text = fmt.Sprintf("%s acts for %s in term %d", x.kind, l.name, x.term)
	}
	return b
}

func (w *world) leadsOn(l *contestLog, x *actor) {
	if w.history == nil || x.bar == 0 {
		return
	}
	b, next := &w.history.Bars[x.bar-1], w.bar(l, x)
	b.Lease = next.Lease
	if next.Label != b.Label { // the same leader goes on in a higher term
		b.To = next.From
		w.leads(l, x)
	}
}

func (w *world) leadsNoMore(x *actor) {
	if w.history != nil && x.bar > 0 {
		b := &w.history.Bars[x.bar-1]
		b.To = min(w.now(), b.Lease)
	}
}

func (w *world) sending(a, b *agent, m election.Message) int {
	if w.history == nil {
		return 0
	}
	return w.history.add(spacetime.Arrow{From: a.id, To: b.id, Sent: w.now(), Came: spacetime.Never, Text: messages.Brief(m), Detail: messages.Describe(m), Quiet: routine(m)})
}

// repeating returns the arrow of the second copy of a message.
func (w *world) repeating(i int) int {
	if i == 0 {
		return 0
	}
	again := w.history.Arrows[i]
	again.Text += " (repeated)"
	return w.history.add(again)
}

func (h *History) add(a spacetime.Arrow) int {
	if len(h.Arrows) >= maxArrows {
		return 0
	}
	h.Arrows = append(h.Arrows, a)
	return len(h.Arrows) - 1
}

func (w *world) arriving(e flight, lost bool) {
	if e.arrow > 0 {
		a := &w.history.Arrows[e.arrow]
		a.Lost, a.Came = lost, w.now()
	}
}

func (w *world) mark(lane int, kind spacetime.MarkKind, text string) {
	if h := w.history; h != nil {
		h.Marks = append(h.Marks, spacetime.Mark{Lane: lane, At: w.now(), Kind: kind, Text: text})
	}
}

func (w *world) noting(a *agent, text string) {
	lane := -1
	if a != nil {
		lane = a.id
	}
	if !strings.HasPrefix(text, "VIOLATION") && !strings.HasPrefix(text, "seed ") {
		kind := spacetime.Note
		if lane >= 0 && (strings.HasPrefix(text, "STARTS") || strings.HasPrefix(text, "STOPS")) {
			kind = spacetime.Text
		}
		w.mark(lane, kind, text)
	}
}

func (w *world) announcing(a *agent, x election.Announcement) {
	if w.history == nil {
		return
	}
	text := fmt.Sprintf("%s %s, term %d: %s", x.Election, x.Event, x.Term, x.Reason)
	if x.Leader == a.holder() {
		text = "LEADS " + text
	}
	w.mark(a.id, spacetime.Leader, text)
}

// routine reports whether a message is of a kind that is sent all the time.
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

func at(t time.Duration) string { return fmt.Sprintf("%.3f s", t.Seconds()) }

// A diagram shows at most so many heartbeats, and so many other messages: the newest.
const (
	drawnMessages = 400
	drawnQuiet    = 3000
)

// Diagram returns the newest part of the run, as much as a person can look at.
func (r Result) Diagram() spacetime.Diagram {
	h := r.History
	d := h.Diagram
	d.From, d.Arrows = h.begin(), d.Arrows[1:]
	if v := r.Violation; v != nil {
		first, _, _ := strings.Cut(v.What, "\n")
		d.Title += " violates " + v.Rule
		d.Facts = append(d.Facts, fmt.Sprintf("At %s: %s", at(v.At), first))
		d.Command = v.Replay
		for _, b := range d.Bars {
			if b.To >= h.To { // a rival still leads: show how long
				d.To = max(d.To, min(b.Lease, h.To+2*h.plan.timing.Lease))
			}
		}
	}
	d.Facts = append(d.Facts, h.plan.String())
	if d.From > 0 {
		d.Facts = append(d.Facts, fmt.Sprintf("Drawn from %s on, of %s.", at(d.From), at(h.To)))
	}
	return d
}

// begin returns when the drawn part of the run begins: so late that the part is small enough for
// a person to read.
func (h *History) begin() time.Duration {
	messages, quiet := 0, 0
	for i := len(h.Arrows) - 1; i > 0; i-- {
		if h.Arrows[i].Quiet {
			quiet++
		} else {
			messages++
		}
		if messages > drawnMessages || quiet > drawnQuiet {
			return h.Arrows[i].Sent + 1
		}
	}
	return 0
}

// Story describes the end of a run in at most that many lines. It has faults, leaderships and
// messages other than heartbeats, in the order of true time.
func (h *History) Story(most int) []string {
	d := h.Diagram
	d.Arrows = d.Arrows[1:]
	all := d.Lines()
	var lines []string
	if n := len(all) - most; n > 0 {
		lines = append(lines, fmt.Sprintf("... %d lines before", n))
		all = all[n:]
	}
	for _, l := range all {
		who, indent := "", ""
		if l.Lane >= 0 {
			who = h.Lanes[l.Lane]
		}
		if l.Sent {
			indent = "  "
		}
		first, _, _ := strings.Cut(l.Text, "\n")
		lines = append(lines, fmt.Sprintf("%10s  %-5s %s%s", at(l.At), who, indent, first))
	}
	return lines
}
