package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/observe"
	"github.com/doyen-election/doyen/testbed/spacetime"
)

const (
	pageWidth  = 1180.0 // units of a timeline's drawing
	nameWidth  = 132.0  // for the hosts' names, on the left
	rightSpace = 14.0
	// Above the hosts is the ribbon of who led. Above the ribbon are the words for the
	// script's lines and for overlaps.
	ribbonSpace = 26.0
	wordSpace   = 20.0
	faultBar    = 4.0 // height, on top of a host's states
	// finest is the least width that anything is drawn with. Of states that are narrower and
	// lie on one point, only one is drawn.
	finest = 0.5
	// thinnest is the least width of a leader, a fault and an overlap.
	thinnest = 1.6
	// roomy is the height of a host with room for words.
	roomy = 32.0
	// letter is the width of a letter, at most.
	letter = 6.6
)

// timeline is one election of a recording, or a part of it, laid out.
type timeline struct {
	Title         string
	Width, Height float64
	Small         bool // many hosts, so less room for each
	top, bottom   float64
	pieces        []piece // later ones lie on top
}

// piece is something with a place. Without a width or a height it is a line. Without both,
// only its label is drawn.
type piece struct {
	kind           string // what it is, as a class for the style
	x, y, w, h     float64
	class          string
	label          string // "" if there is no room
	labelX, labelY float64
	title          string // shown when the pointer is over it
}

// inside puts the label on the piece.
func (p piece) inside() piece {
	p.labelX, p.labelY = p.x+4, p.y+p.h/2+4
	return p
}

// SVG draws the timeline.
func (t timeline) SVG() template.HTML {
	var s spacetime.SVG
	for _, p := range t.pieces {
		s.Group(p.kind, p.title, func() {
			switch {
			case p.w > 0 && p.h > 0:
				s.Rect(p.class, p.x, p.y, p.w, p.h, "")
			case p.w > 0 || p.h > 0:
				s.Line(p.class, p.x, p.y, p.x+p.w, p.y+p.h, "")
			}
			if p.label != "" {
				s.Text(p.class, p.labelX, p.labelY, p.label, "")
			}
		})
	}
	return s.HTML()
}

// scale maps instants to places.
type scale struct {
	from, to election.Instant
	zero     election.Instant // what the ticks count from
	height   float64          // of a host
}

func (s scale) x(at election.Instant) float64 {
	share := float64(min(max(at, s.from), s.to)-s.from) / math.Max(float64(s.to-s.from), 1)
	return nameWidth + share*(pageWidth-nameWidth-rightSpace)
}

// seen reports whether a stretch reaches into the time that is drawn.
func (s scale) seen(from, to election.Instant) bool { return from <= s.to && to >= s.from }

func (s scale) since(at election.Instant) string { return seconds(at.Sub(s.zero)) }

// seconds writes a time with as many digits as are useful.
func seconds(d time.Duration) string {
	switch {
	case d > -time.Second && d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < 10*time.Second:
		return fmt.Sprintf("%.3f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// span writes when something began and ended, and how long it lasted.
func (s scale) span(from, to election.Instant) string {
	return fmt.Sprintf("from %s to %s: %s", s.since(from), s.since(to), seconds(to.Sub(from)))
}

// place gives a stretch its place: as wide as it was long, but not below least.
func (s scale) place(from, to election.Instant, y, h, least float64) piece {
	x := s.x(from)
	return piece{x: x, y: y, w: math.Max(s.x(to)-x, least), h: h}
}

// hostHeight is the height of a host: the more hosts, the less.
func hostHeight(hosts int) float64 {
	switch {
	case hosts <= 12:
		return roomy
	case hosts <= 25:
		return 18
	}
	return 13
}

// rise is how far below a host's top its states begin. Above them are its faults.
func (s scale) rise() float64 {
	if s.height < roomy {
		return faultBar
	}
	return faultBar + 9
}

// thick is the height of a host's states. Below them, if there is room, is what its programs
// do.
func (s scale) thick() float64 {
	if s.height < roomy {
		return s.height - s.rise() - 2
	}
	return s.height - s.rise() - 6
}

// lay draws one election of a recording, between two instants. Ticks count from zero.
func lay(r *observe.Recording, name string, from, to, zero election.Instant) timeline {
	s := scale{from: from, to: max(to, from+1), zero: zero, height: hostHeight(len(r.Hosts))}
	t := timeline{Width: pageWidth, Small: s.height < roomy, top: ribbonSpace}
	if len(r.Steps) > 0 || len(r.Overlaps) > 0 {
		t.top += wordSpace
	}
	t.bottom = t.top + float64(len(r.Hosts))*s.height
	t.Height = t.bottom + 30
	add := func(kind string, all ...piece) {
		for _, p := range all {
			p.kind = kind
			t.pieces = append(t.pieces, p)
		}
	}
	label := func(text string, y float64) piece { return piece{label: text, labelX: nameWidth - 8, labelY: y} }
	rows, led := map[string]float64{}, leaderships(r, name)
	add("tick", s.ticks(t.top, t.bottom)...)
	add("step", s.steps(r, t.bottom)...)
	add("name", label("leader", t.top-10))
	add("ribbon", s.ribbon(led, t.top-ribbonSpace)...)
	for i, h := range r.Hosts {
		y := t.top + float64(i)*s.height
		rows[h.Name] = y
		text := h.Name
		if !h.Voter {
			text += " (no vote)"
		}
		add("rest", piece{x: nameWidth, y: y, w: pageWidth - rightSpace - nameWidth})
		add("name", label(text, y+(s.height+s.rise())/2+1))
		add("state", s.states(spansOf(h, name, led), h.Name, y)...)
		add("program", s.programs(r, h.Name, name, y)...)
	}
	var faults []piece
	for _, f := range r.Faults {
		faults = append(faults, s.fault(f, rows)...)
	}
	unclutter(faults, pageWidth-rightSpace)
	add("fault", faults...)
	for _, o := range r.Overlaps {
		if o.Election == name && s.seen(o.From, o.To) {
			p := s.place(o.From, o.To, t.top-4, t.bottom-t.top+8, thinnest)
			p.label, p.labelX, p.labelY = "two leaders", p.x+4, 12
			p.title = fmt.Sprintf("%s and %s both led, as %s reported, %s", o.First, o.Second, o.By, s.span(o.From, o.To))
			add("overlap", p)
		}
	}
	return t
}

// silent is the state of an agent that said that it leads and then was frozen: it could not
// say anything when its lease was over.
const silent = "silent"

// spansOf returns what an agent said of an election, with silent for the time when
// it could say nothing.
func spansOf(h observe.HostRecord, name string, led []lead) []observe.StateSpan {
	var all []observe.StateSpan
	for _, span := range h.Spans {
		if span.Election != name {
			continue
		}
		i := slices.IndexFunc(led, func(l lead) bool {
			return span.State == api.StateLeading && l.host == h.Name && l.from == span.From && l.to < span.To
		})
		if i < 0 {
			all = append(all, span)
			continue
		}
		rest := span
		span.To, rest.From, rest.State, rest.Reason = led[i].to, led[i].to, silent, ""
		all = append(all, span, rest)
	}
	return all
}

// states draws what a host's agent said, one span after another.
func (s scale) states(spans []observe.StateSpan, host string, y float64) []piece {
	var all []piece
	shown := "" // the state of the last piece
	for _, span := range spans {
		if !s.seen(span.From, span.To) {
			continue
		}
		least := finest
		if span.State == api.StateLeading {
			least = thinnest
		}
		p := s.place(span.From, span.To, y+s.rise(), s.thick(), least)
		p.class, p.title = "s-"+span.State, describe(host, span)+", "+s.span(span.From, span.To)
		if text := fmt.Sprintf("term %d", span.Term); span.State == api.StateLeading && s.height >= roomy && p.w > letter*float64(len(text))+4 {
			p.label = text
			p = p.inside()
		}
		if n := len(all); n > 0 && p.w <= least && p.x-all[n-1].x < finest {
			if weight(span.State) > weight(shown) { // of states on one point, show the one that matters most
				all[n-1], shown = p, span.State
			}
			continue
		}
		all, shown = append(all, p), span.State
	}
	return all
}

// weight orders states by how bad it would be not to see them.
func weight(state string) int {
	return slices.Index([]string{api.StateIdle, api.StateFollowing, silent, observe.StateDown, api.StateElecting, api.StateNoQuorum, api.StateLeading}, state)
}

func describe(host string, s observe.StateSpan) string {
	var text string
	switch s.State {
	case api.StateLeading:
		text = fmt.Sprintf("%s leads in term %d", host, s.Term)
	case api.StateFollowing:
		text = fmt.Sprintf("%s follows %s in term %d", host, s.Leader, s.Term)
	case api.StateElecting:
		text = host + " knows no leader and elects one"
	case api.StateNoQuorum:
		text = host + " reaches no majority"
	case observe.StateDown:
		text = host + " is down"
	case silent:
		text = host + " reports nothing, and its lease has expired"
	default:
		text = host + " is " + s.State
	}
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}

func (s scale) programs(r *observe.Recording, host, name string, y float64) []piece {
	var all []piece
	for _, p := range r.Programs {
		if p.Host != host || p.Election != name || !s.seen(p.From, p.To) {
			continue
		}
		d := s.place(p.From, p.To, y+s.height-5, 3, thinnest)
		d.class = "acts"
		d.title = fmt.Sprintf("program %s acts in term %d, %s", p.Program, p.Term, s.span(p.From, p.To))
		all = append(all, d)
	}
	return all
}
