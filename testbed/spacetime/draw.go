package spacetime

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

const (
	gutter   = 84.0 // for the times, left of the lanes
	barWidth = 9.0
	rowWidth = 12.0 // from one election's bars to the next one's
	top      = 14.0
)

// drawing is one diagram being drawn.
type drawing struct {
	Diagram
	SVG
	axis  axis
	lines []Line
	lane  float64 // pixels from one lane to the next
	text  float64 // where the text begins
}

func newDrawing(d Diagram) *drawing {
	g := &drawing{Diagram: d.clip()}
	g.lane = min(max(860/float64(max(len(d.Lanes), 1)), 92), 190)
	g.text = gutter + float64(len(d.Lanes))*g.lane + 16
	g.lines = g.Diagram.Lines()
	g.axis = newAxis(g.Diagram, g.lines, top)
	return g
}

// x returns where the middle of a lane is.
func (g *drawing) x(lane int) float64 { return gutter + (float64(lane)+0.62)*g.lane }

func seconds(t time.Duration) string { return fmt.Sprintf("%.3f s", t.Seconds()) }

// span writes the times in a hover text.
func (g *drawing) span(from, to time.Duration) string {
	return fmt.Sprintf("from %s to %s", seconds(from), seconds(to))
}

// draw draws everything. Shapes that must lie on top come last.
func (g *drawing) draw() {
	g.rows()
	for i := range g.Lanes {
		g.Line("ghost", g.x(i), 0, g.x(i), g.axis.bottom(), "")
	}
	for _, s := range g.Lives {
		g.life(s)
	}
	for _, b := range g.Bars {
		g.bar(b)
	}
	for _, s := range g.Pauses {
		y, end := g.axis.y(s.From), g.axis.y(s.To)
		g.Rect("pause", g.x(s.Lane)-4, y, 8, max(end-y, 3), g.Lanes[s.Lane]+" paused, "+g.span(s.From, s.To))
	}
	for _, a := range g.Arrows {
		g.arrow(a)
	}
	for _, m := range g.Marks {
		g.mark(m)
	}
}

// rows writes the times on the left and what happened on the right.
func (g *drawing) rows() {
	shown := time.Duration(-1)
	for i, l := range g.lines {
		y := g.axis.rows[i]
		class := [...]string{"note", "note", "fault", "leader", "violation"}[l.Kind]
		if l.Sent {
			class = "sent"
		}
		if l.At != shown {
			g.Text("time", gutter-14, y+4, seconds(l.At), "")
			shown = l.At
		}
		if l.Lane >= 0 {
			g.Text("who "+class, g.text, y+4, g.Lanes[l.Lane], "")
		}
		if l.Kind == Violation || l.Kind == Fault {
			g.Line("rule "+class, gutter, y, g.text-4, y, "")
		}
		text := map[MarkKind]string{Violation: "✖ ", Fault: "⚡ ", Leader: "★ "}[l.Kind] + l.Text
		g.Text(class, g.text+34, y+4, short(text), text)
	}
}

// short cuts a text that would run off the page. Hovering shows the whole text.
func short(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	if r := []rune(first); len(r) > 120 {
		return string(r[:119]) + "…"
	}
	return first
}

func (g *drawing) life(s Span) {
	end := s.To
	if end == Never {
		end = g.To
	}
	x, from, to := g.x(s.Lane), g.axis.y(s.From), g.axis.y(end)
	g.Line("life", x, from, x, to, s.Text)
	if s.From >= g.From {
		g.Path("start", s.Text+" starts at "+seconds(s.From), "M%.1f %.1fa4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x-4, from)
	}
	if end < g.To {
		g.Path("stop", s.Text+" stops at "+seconds(s.To), "M%.1f %.1fl10 10m0 -10l-10 10", x-5, to-5)
	}
}

// bar draws a leadership left of its lane: solid while it lasted, then dashed until the end of its lease. The
// bar of a program that acts is thin, and has no dashed part.
func (g *drawing) bar(b Bar) {
	left := g.x(b.Lane) - 8 - barWidth - float64(b.Row)*rowWidth
	from, to, lease := g.axis.y(b.From), g.axis.y(b.To), g.axis.y(b.Lease)
	title := fmt.Sprintf("%s: %s %s, lease to %s", g.Lanes[b.Lane], b.Text, g.span(b.From, b.To), seconds(b.Lease))
	if b.Acts {
		g.Rect("acts", left+3, from, 3, max(to-from, 1), title)
		return
	}
	g.Rect(fmt.Sprintf("claim row%d", b.Row%4), left, from, barWidth, max(to-from, 2), title)
	if b.From >= g.From {
		g.Text("term", left-3, from+9, b.Label, "")
	}
	if b.Lease > b.To && lease > to {
		g.Rect("rest", left, to, barWidth, lease-to, title)
	}
	if b.Lease <= g.To {
		g.Path("lease", "lease of "+b.Text+" ends at "+seconds(b.Lease), "M%.1f %.1fh%.1f", left-4, lease, barWidth+8)
	}
}

func (g *drawing) arrow(a Arrow) {
	class := "msg"
	if a.Quiet {
		class += " quiet"
	}
	x1, y1, x2, y2 := g.x(a.From), g.axis.y(a.Sent), g.x(a.To), g.axis.y(a.end(g.Diagram.To))
	end := "arrives at " + seconds(a.Came)
	switch {
	case a.Lost:
		class += " lost"
		end = "lost"
		x2 = x1 + 0.6*(x2-x1)
	case a.Came == Never || a.Came > g.Diagram.To:
		class += " open"
		end = "under way at the end"
		x2 = x1 + 0.5*(x2-x1)
	}
	title := fmt.Sprintf("%s, %s to %s, sent at %s, %s\n%s", a.Text, g.Lanes[a.From], g.Lanes[a.To], seconds(a.Sent), end, a.Detail)
	g.Group(class, title, func() {
		g.Line("way", x1, y1, x2, y2, "")
		switch {
		case a.Lost:
			g.Path("gone", "", "M%.1f %.1fl8 8m0 -8l-8 8", x2-4, y2-4)
		case end[0] == 'a':
			side := 7.0
			if x2 > x1 {
				side = -7
			}
			slope := (y2 - y1) / (x2 - x1) * side
			g.Path("head", "", "M%.1f %.1fl%.1f %.1fl0 7z", x2, y2, side, slope-3.5)
		}
	})
}

// end returns when the message came or was lost; if neither happened, when the drawing ends.
func (a Arrow) end(end time.Duration) time.Duration {
	if a.Came == Never {
		return end
	}
	return a.Came
}

func (g *drawing) mark(m Mark) {
	if m.Lane < 0 || m.Kind == Text {
		return
	}
	x, y := g.x(m.Lane), g.axis.y(m.At)
	title := fmt.Sprintf("%s: %s, at %s", g.Lanes[m.Lane], m.Text, seconds(m.At))
	if m.Kind == Leader {
		g.Path("markleader", title, "M%.1f %.1fl4.5 4.5l-4.5 4.5l-4.5 -4.5z", x, y-4.5)
	} else {
		g.Rect("marknote", x-3.5, y-3.5, 7, 7, title)
	}
}

const (
	lineHeight = 15.0 // pixels, of a line of text
	leastGap   = 4.0  // at least, between two different moments
	decade     = 16.0 // how much taller a ten times longer time is drawn
)

// axis maps times to heights: in order, but not to scale.
type axis struct {
	times   []time.Duration
	heights []float64
	rows    []float64 // of the lines of text
}

// newAxis gives every line of text its own row, at the height of the line's time or, if there is
// no room, below that.
func newAxis(d Diagram, lines []Line, top float64) axis {
	times := []time.Duration{d.From, d.To}
	add := func(ts ...time.Duration) {
		for _, t := range ts {
			if t >= d.From && t <= d.To {
				times = append(times, t)
			}
		}
	}
	for _, a := range d.Arrows {
		if !a.Quiet {
			add(a.Sent, a.Came)
		}
	}
	for _, b := range d.Bars {
		add(b.From, b.To, b.Lease)
	}
	for _, s := range slices.Concat(d.Lives, d.Pauses) {
		add(s.From, s.To)
	}
	for _, l := range lines {
		add(l.At)
	}
	slices.Sort(times)
	a := axis{times: slices.Compact(times)}
	next, row := 0, top
	y := top
	for i, t := range a.times {
		if i > 0 {
			ms := (t - a.times[i-1]).Seconds() * 1000
			y += leastGap + decade*math.Log10(1+ms)
		}
		if next < len(lines) && lines[next].At == t {
			y = max(y, row)
		}
		a.heights = append(a.heights, y)
		for ; next < len(lines) && lines[next].At == t; next++ {
			row = max(row, y)
			a.rows = append(a.rows, row)
			row += lineHeight
		}
	}
	return a
}

// y returns the height of a time.
func (a axis) y(t time.Duration) float64 {
	last := len(a.times) - 1
	switch {
	case t <= a.times[0]:
		return a.heights[0]
	case t >= a.times[last]:
		return a.heights[last]
	}
	i := sort.Search(len(a.times), func(i int) bool { return a.times[i] >= t })
	from, to := a.times[i-1], a.times[i]
	part := float64(t-from) / float64(to-from)
	return a.heights[i-1] + part*(a.heights[i]-a.heights[i-1])
}

// bottom is the height of the last moment or of the last row, whichever is further down.
func (a axis) bottom() float64 {
	y := a.heights[len(a.heights)-1]
	if n := len(a.rows); n > 0 {
		y = max(y, a.rows[n-1])
	}
	return y
}

// SVG is a drawing to which shapes are added. A shape has a class, for the style, and a title, which
// is shown when the pointer is over the shape. Later shapes lie on top. Every text is escaped.
type SVG struct{ out strings.Builder }

// element writes an element. It escapes the text and the title, but not the attributes.
func (s *SVG) element(tag, class, attributes, title, text string) {
	fmt.Fprintf(&s.out, `<%s class="%s" %s>`, tag, class, attributes)
	if title != "" {
		fmt.Fprintf(&s.out, "<title>%s</title>", html.EscapeString(title))
	}
	fmt.Fprintf(&s.out, "%s</%s>\n", html.EscapeString(text), tag)
}

func (s *SVG) Rect(class string, x, y, w, h float64, title string) {
	s.element("rect", class, fmt.Sprintf(`x="%.1f" y="%.1f" width="%.1f" height="%.1f"`, x, y, w, h), title, "")
}

func (s *SVG) Line(class string, x1, y1, x2, y2 float64, title string) {
	s.element("line", class, fmt.Sprintf(`x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"`, x1, y1, x2, y2), title, "")
}

// Path draws a path. Its data has a formatting verb for each number.
func (s *SVG) Path(class, title, data string, numbers ...any) {
	s.element("path", class, `d="`+fmt.Sprintf(data, numbers...)+`"`, title, "")
}

func (s *SVG) Text(class string, x, y float64, text, title string) {
	s.element("text", class, fmt.Sprintf(`x="%.1f" y="%.1f"`, x, y), title, text)
}

// Group gives shapes one class and one title.
func (s *SVG) Group(class, title string, draw func()) {
	fmt.Fprintf(&s.out, `<g class="%s"><title>%s</title>`, class, html.EscapeString(title))
	draw()
	s.out.WriteString("</g>\n")
}

// HTML returns what was drawn. It has to be put inside an svg element.
func (s *SVG) HTML() template.HTML { return template.HTML(s.out.String()) }
