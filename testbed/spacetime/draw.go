package spacetime

import (
	"fmt"
	"html"
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
	out   strings.Builder
	axis  axis
	lines []line
	lane  float64 // pixels from one to the next
	text  float64 // where the text begins
}

func newDrawing(d Diagram) *drawing {
	g := &drawing{Diagram: d.clip()}
	g.lane = min(max(860/float64(max(len(d.Lanes), 1)), 92), 190)
	g.text = gutter + float64(len(d.Lanes))*g.lane + 16
	g.lines = g.Diagram.lines()
	g.axis = newAxis(g.Diagram, g.lines, top)
	return g
}

func (g *drawing) printf(format string, args ...any) { fmt.Fprintf(&g.out, format, args...) }

// x is a lane's middle.
func (g *drawing) x(lane int) float64 { return gutter + (float64(lane)+0.62)*g.lane }

// seconds writes a time.
func seconds(t time.Duration) string { return fmt.Sprintf("%.3f s", t.Seconds()) }

// span writes a hover text's times.
func (g *drawing) span(from, to time.Duration) string {
	return fmt.Sprintf("from %s to %s", seconds(from), seconds(to))
}

func esc(s string) string { return html.EscapeString(s) }

// draw draws everything, what is to lie on top last.
func (g *drawing) draw() string {
	g.rows()
	for i := range g.Lanes {
		g.printf(`<line class="ghost" x1="%.1f" y1="0" x2="%.1f" y2="%.1f"/>`+"\n", g.x(i), g.x(i), g.axis.bottom())
	}
	for _, s := range g.Lives {
		g.life(s)
	}
	for _, b := range g.Bars {
		g.bar(b)
	}
	for _, s := range g.Pauses {
		y, end := g.axis.y(s.From), g.axis.y(s.To)
		g.printf(`<rect class="pause" x="%.1f" y="%.1f" width="8" height="%.1f"><title>%s paused, %s</title></rect>`+"\n",
			g.x(s.Lane)-4, y, max(end-y, 3), esc(g.Lanes[s.Lane]), g.span(s.From, s.To))
	}
	for _, a := range g.Arrows {
		g.arrow(a)
	}
	for _, m := range g.Marks {
		g.mark(m)
	}
	return g.out.String()
}

// rows writes the times on the left and what happened on the right.
func (g *drawing) rows() {
	shown := time.Duration(-1)
	for i, l := range g.lines {
		y := g.axis.rows[i]
		class := [...]string{"note", "note", "fault", "leader", "violation"}[l.kind]
		if l.sent {
			class = "sent"
		}
		if l.at != shown {
			g.printf(`<text class="time" x="%.1f" y="%.1f">%s</text>`+"\n", gutter-14, y+4, seconds(l.at))
			shown = l.at
		}
		who := ""
		if l.lane >= 0 {
			who = g.Lanes[l.lane]
		}
		if l.kind == Violation || l.kind == Fault {
			g.printf(`<line class="rule %s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", class, gutter, y, g.text-4, y)
		}
		text := map[MarkKind]string{Violation: "✖ ", Fault: "⚡ ", Leader: "★ "}[l.kind] + l.text
		g.printf(`<text class="%s" x="%.1f" y="%.1f"><tspan class="who">%s</tspan><tspan x="%.1f">%s</tspan><title>%s</title></text>`+"\n",
			class, g.text, y+4, esc(who), g.text+34, esc(short(text)), esc(text))
	}
}

// short cuts a text that would run off the page; hovering shows it whole.
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
	g.printf(`<line class="life" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"><title>%s</title></line>`+"\n", x, from, x, to, esc(s.Text))
	if s.From >= g.From {
		g.printf(`<circle class="start" cx="%.1f" cy="%.1f" r="4"><title>%s starts at %s</title></circle>`+"\n", x, from, esc(s.Text), seconds(s.From))
	}
	if end < g.To {
		g.cross(x, to, 5, "stop", fmt.Sprintf("%s stops at %s", s.Text, seconds(s.To)))
	}
}

func (g *drawing) cross(x, y, r float64, class, title string) {
	g.printf(`<path class="%s" d="M%.1f %.1fl%.1f %.1fm0 %.1fl%.1f %.1f"><title>%s</title></path>`+"\n",
		class, x-r, y-r, 2*r, 2*r, -2*r, -2*r, 2*r, esc(title))
}

// bar draws a leadership left of its lane: solid while it lasted, then dashed
// until its lease would have ended.
func (g *drawing) bar(b Bar) {
	left := g.x(b.Lane) - 8 - barWidth - float64(b.Row)*rowWidth
	from, to, lease := g.axis.y(b.From), g.axis.y(b.To), g.axis.y(b.Lease)
	title := fmt.Sprintf("%s: %s %s, lease to %s", esc(g.Lanes[b.Lane]), esc(b.Text), g.span(b.From, b.To), seconds(b.Lease))
	if b.Acts {
		g.printf(`<rect class="acts" x="%.1f" y="%.1f" width="3" height="%.1f"><title>%s</title></rect>`+"\n", left+3, from, max(to-from, 1), title)
		return
	}
	g.printf(`<rect class="claim row%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`+"\n",
		b.Row%4, left, from, barWidth, max(to-from, 2), title)
	if b.From >= g.From {
		g.printf(`<text class="term" x="%.1f" y="%.1f">%s</text>`+"\n", left-3, from+9, esc(b.Label))
	}
	if b.Lease > b.To && lease > to {
		g.printf(`<rect class="rest" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`+"\n", left, to, barWidth, lease-to, title)
	}
	if b.Lease <= g.To {
		g.printf(`<path class="lease" d="M%.1f %.1fh%.1f"><title>lease of %s ends at %s</title></path>`+"\n", left-4, lease, barWidth+8, esc(b.Text), seconds(b.Lease))
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
	g.printf(`<g class="%s"><title>%s, %s to %s, sent at %s, %s`+"\n%s</title>", class, esc(a.Text), esc(g.Lanes[a.From]), esc(g.Lanes[a.To]), seconds(a.Sent), end, esc(a.Detail))
	g.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x1, y1, x2, y2)
	switch {
	case a.Lost:
		g.printf(`<path d="M%.1f %.1fl8 8m0 -8l-8 8"/>`, x2-4, y2-4)
	case end[0] == 'a':
		side := 7.0
		if x2 > x1 {
			side = -7
		}
		slope := (y2 - y1) / (x2 - x1) * side
		g.printf(`<path class="head" d="M%.1f %.1fl%.1f %.1fl0 7z"/>`, x2, y2, side, slope-3.5)
	}
	g.printf("</g>\n")
}

// end is when the arrow ends in a drawing that ends at that time.
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
	switch m.Kind {
	case Leader:
		g.printf(`<path class="markleader" d="M%.1f %.1fl4.5 4.5l-4.5 4.5l-4.5 -4.5z"><title>%s: %s, at %s</title></path>`+"\n",
			x, y-4.5, esc(g.Lanes[m.Lane]), esc(m.Text), seconds(m.At))
	default:
		g.printf(`<rect class="marknote" x="%.1f" y="%.1f" width="7" height="7"><title>%s: %s, at %s</title></rect>`+"\n",
			x-3.5, y-3.5, esc(g.Lanes[m.Lane]), esc(m.Text), seconds(m.At))
	}
}
