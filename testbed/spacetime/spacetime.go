// Package spacetime draws what a cluster did as a space-time diagram (Lamport 1978). It has a
// lane per agent, time downwards, messages as arrows between lanes, and leaderships as bars.
// Lines of text beside the diagram list who did what when.
//
// A diagram is one self-contained HTML page, readable in light and dark and without colour,
// with every text escaped. Time is not to scale: short times are drawn too long and long ones too
// short, but the order is right. The package does not judge what it draws.
package spacetime

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/internal/base/each"
)

// Never is the end of what has not ended.
const Never time.Duration = -1

// Diagram is what is drawn. Times count from the beginning of the run. Only what happened between
// From and To, at least in part, is drawn.
type Diagram struct {
	Title    string
	Facts    []string // a line each, under the title
	Command  string   // the command that shows the diagram again
	Lanes    []string
	From, To time.Duration
	Lives    []Span // when an agent's process was up
	Pauses   []Span // when an agent's process stood still
	Bars     []Bar
	Arrows   []Arrow
	Marks    []Mark
	Slow     time.Duration // a message that takes longer is listed with its arrival; 0: no message is
}

// Span is a stretch of time in one lane; To may be Never.
type Span struct {
	Lane     int
	From, To time.Duration
	Text     string
}

// Bar is a leadership.
type Bar struct {
	Span
	Label string        // beside its beginning
	Row   int           // the number of its election, if there are several
	Acts  bool          // true: a program acts; false: an agent's status shows that it leads
	Lease time.Duration // when the leadership's lease ends
}

// Arrow is a message from one lane to another.
type Arrow struct {
	From, To   int
	Sent, Came time.Duration // Came: when it arrived or was lost; Never if neither happened in the run
	Text       string
	Detail     string
	Lost       bool
	Quiet      bool // of a frequent kind, such as a heartbeat: drawn thin, not listed
}

// MarkKind is what a mark is about.
type MarkKind uint8

const (
	Note MarkKind = iota
	Text          // only listed, not drawn
	Fault
	Leader
	Violation
)

// Mark is something that happened at one moment in one lane, or in none if Lane is -1.
type Mark struct {
	Lane int
	At   time.Duration
	Kind MarkKind
	Text string
}

// clip removes what happened before From or after To.
func (d Diagram) clip() Diagram {
	out := func(t time.Duration) bool { return t < d.From || t > d.To }
	misses := func(s Span) bool { return s.From > d.To || s.To != Never && s.To < d.From }
	d.Lives = slices.DeleteFunc(slices.Clone(d.Lives), misses)
	d.Pauses = slices.DeleteFunc(slices.Clone(d.Pauses), misses)
	d.Bars = slices.DeleteFunc(slices.Clone(d.Bars), func(b Bar) bool { return b.From > d.To || max(b.To, b.Lease) < d.From })
	d.Arrows = slices.DeleteFunc(slices.Clone(d.Arrows), func(a Arrow) bool { return out(a.Sent) && (a.Came == Never || out(a.Came)) })
	d.Marks = slices.DeleteFunc(slices.Clone(d.Marks), func(m Mark) bool { return out(m.At) })
	return d
}

// Line is a line of the text beside the diagram.
type Line struct {
	Mark
	Sent bool // it is about messages
}

// Lines puts into words what is drawn: each mark, and each message that is not quiet. Equal
// messages that one agent sends at once share a line.
func (d Diagram) Lines() []Line {
	all := each.Of(d.Marks, func(m Mark) Line { return Line{Mark: m} })
	for i := 0; i < len(d.Arrows); i++ {
		a := d.Arrows[i]
		if a.Quiet || a.Sent < d.From {
			continue
		}
		text := "to " + d.receiver(a)
		for i+1 < len(d.Arrows) {
			next := d.Arrows[i+1]
			if next.From != a.From || next.Sent != a.Sent || next.Text != a.Text {
				break
			}
			text += ", " + d.receiver(next)
			i++
		}
		all = append(all, Line{Mark{Lane: a.From, At: a.Sent, Text: a.Text + " " + text}, true})
	}
	slices.SortStableFunc(all, func(a, b Line) int { return cmp.Compare(a.At, b.At) })
	return all
}

func (d Diagram) receiver(a Arrow) string {
	switch {
	case a.Lost:
		return d.Lanes[a.To] + " (lost)"
	case a.Came == Never:
		return d.Lanes[a.To] + " (under way)"
	case d.Slow > 0 && a.Came-a.Sent > d.Slow:
		return d.Lanes[a.To] + " (at " + seconds(a.Came) + ")"
	}
	return d.Lanes[a.To]
}
