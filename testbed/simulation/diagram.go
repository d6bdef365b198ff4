package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/spacetime"
)

// drawn is how many messages a diagram shows at most, heartbeats aside, and how
// many heartbeats: the newest.
const (
	drawnMessages = 400
	drawnQuiet    = 3000
)

// Diagram returns the newest part of the run, as much as a person can look at.
func (r Result) Diagram() spacetime.Diagram {
	h := r.History
	d := spacetime.Diagram{Lanes: h.lanes, From: time.Duration(h.begin()), To: time.Duration(h.ended)}
	d.Title = fmt.Sprintf("Seed %d", h.seed)
	if v := r.Violation; v != nil {
		first, _, _ := strings.Cut(v.What, "\n")
		d.Title += " violates " + v.Rule
		d.Facts = append(d.Facts, fmt.Sprintf("At %s: %s", at(int64(v.At)), first))
		d.Command = v.Replay
	}
	d.Facts = append(d.Facts, h.plan.String())
	if d.From > 0 {
		d.Facts = append(d.Facts, fmt.Sprintf("Drawn from %s on, of %s.", at(int64(d.From)), at(h.ended)))
	}
	for _, s := range h.lives {
		life := s.drawn()
		if s.to == h.ended {
			life.To = spacetime.Never // it was not the process that ended
		}
		d.Lives = append(d.Lives, life)
	}
	for _, s := range h.pauses {
		d.Pauses = append(d.Pauses, s.drawn())
	}
	for i := range h.bars {
		d.Bars = append(d.Bars, h.drawBar(&h.bars[i]))
		if r.Violation != nil && h.bars[i].to >= h.ended { // who else leads still does, and until when
			d.To = max(d.To, min(time.Duration(h.bars[i].lease), time.Duration(h.ended)+2*h.plan.timing.Lease))
		}
	}
	for i := range h.arrows[1:] {
		a := &h.arrows[1+i]
		d.Arrows = append(d.Arrows, spacetime.Arrow{From: a.from, To: a.to, Sent: time.Duration(a.sent), Came: time.Duration(a.came),
			Text: a.what, Detail: a.detail, Lost: a.lost, Quiet: a.quiet})
	}
	kinds := map[markKind]spacetime.MarkKind{noteMark: spacetime.Note, textMark: spacetime.Text, faultMark: spacetime.Fault, leaderMark: spacetime.Leader, violationMark: spacetime.Violation}
	for _, m := range h.marks {
		d.Marks = append(d.Marks, spacetime.Mark{Lane: m.lane, At: time.Duration(m.at), Kind: kinds[m.kind], Text: m.text})
	}
	return d
}

func (s span) drawn() spacetime.Span {
	return spacetime.Span{Lane: s.lane, From: time.Duration(s.from), To: time.Duration(s.to), Text: s.text}
}

func (h *History) drawBar(b *bar) spacetime.Bar {
	row := slices.Index(h.plan.elections, b.election)
	label := fmt.Sprintf("T%d", b.term)
	if row != 0 {
		label = string(b.election) + " " + label
	}
	if b.election == election.RosterElection {
		row = 3
	}
	d := spacetime.Bar{Span: b.span.drawn(), Label: label, Row: row, Acts: b.kind == program, Lease: time.Duration(b.lease)}
	d.Text = fmt.Sprintf("%s leads %s in term %d", b.holder, b.election, b.term)
	if d.Acts {
		d.Text = fmt.Sprintf("a program acts for %s in term %d", b.election, b.term)
	}
	return d
}

// begin is when what is drawn begins: not so early that there is more than a
// person can look at.
func (h *History) begin() int64 {
	begin, messages, quiet := int64(0), 0, 0
	for i := len(h.arrows) - 1; i > 0; i-- {
		if h.arrows[i].quiet {
			quiet++
		} else {
			messages++
		}
		if messages > drawnMessages || quiet > drawnQuiet {
			begin = h.arrows[i].sent + 1
			break
		}
	}
	return begin
}

// Story tells the end of a run in at most that many lines: faults, leaderships
// and messages other than heartbeats, in the order of true time.
func (h *History) Story(most int) []string {
	type event struct {
		at   int64
		text string
	}
	var all []event
	for _, m := range h.marks {
		who := ""
		if m.lane >= 0 {
			who = h.lanes[m.lane]
		}
		first, _, _ := strings.Cut(m.text, "\n")
		all = append(all, event{m.at, fmt.Sprintf("%-5s %s", who, first)})
	}
	for i := 1; i < len(h.arrows); i++ {
		a := &h.arrows[i]
		if a.quiet {
			continue
		}
		to := h.outcome(a)
		for ; i+1 < len(h.arrows) && h.arrows[i+1].from == a.from && h.arrows[i+1].sent == a.sent && h.arrows[i+1].what == a.what; i++ {
			to += ", " + h.outcome(&h.arrows[i+1])
		}
		all = append(all, event{a.sent, fmt.Sprintf("%-5s   %s -> %s", h.lanes[a.from], a.what, to)})
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	var lines []string
	if n := len(all) - most; n > 0 {
		lines = append(lines, fmt.Sprintf("... %d lines before", n))
		all = all[n:]
	}
	for _, e := range all {
		lines = append(lines, fmt.Sprintf("%10s  %s", at(e.at), e.text))
	}
	return lines
}

// outcome names the receiver, and says when the message did not arrive soon.
func (h *History) outcome(a *arrow) string {
	to := h.lanes[a.to]
	switch {
	case a.lost:
		return to + " (lost)"
	case a.came == open:
		return to + " (under way)"
	case a.came-a.sent > int64(h.plan.timing.Heartbeat):
		return to + " (at " + at(a.came) + ")"
	}
	return to
}
