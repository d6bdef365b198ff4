package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/observe"
)

// fault draws a fault on every host that it hit.
func (s scale) fault(f observe.Fault, rows map[string]float64) []piece {
	if !s.seen(f.From, f.To) {
		return nil
	}
	text := f.What
	if f.Detail != "" {
		text += ", " + f.Detail
	}
	if len(f.Peers) > 0 {
		text += ": " + strings.Join(f.Where, ", ") + " and " + strings.Join(f.Peers, ", ")
	}
	var all []piece
	for _, host := range f.Where {
		y, known := rows[host]
		if !known {
			continue
		}
		p := s.place(f.From, f.To, y+s.rise()-faultBar, faultBar, thinnest+1)
		p.class, p.title = faultClass(f.What), fmt.Sprintf("%s: %s, %s", host, text, s.span(f.From, f.To))
		if s.height >= roomy {
			p.label, p.labelX, p.labelY = f.What, p.x+1, p.y-1.5
		}
		all = append(all, p)
	}
	return all
}

// unclutter removes the words of a fault if they would run into earlier words in the same row
// or over the right edge.
func unclutter(all []piece, right float64) {
	free := map[float64]float64{} // for each row, where the room begins
	for i := range all {
		p := &all[i]
		end := p.x + letter*0.9*float64(len(p.label)) + 4
		if p.label == "" || p.x < free[p.y] || end > right {
			p.label = ""
			continue
		}
		free[p.y] = end
	}
}

// faultClass is the style of a fault: of processes, of links or of the rest of a host.
func faultClass(what string) string {
	switch what {
	case "crash", "terminate", "freeze", "wipe":
		return "f-process"
	case "cut", "link", "carrier":
		return "f-network"
	}
	return "f-host"
}

type lead struct {
	host     string
	term     uint64
	from, to election.Instant
}

// leaderships returns the leaderships of one election, in the order of their beginnings. A
// leadership ends when its agent stops saying that it leads, or before that with its lease: a
// frozen agent says so for longer.
func leaderships(r *observe.Recording, name string) []lead {
	var all []lead
	for _, h := range r.Hosts {
		for _, span := range h.Spans {
			if span.Election == name && span.State == api.StateLeading {
				all = append(all, lead{h.Name, span.Term, span.From, span.To})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b lead) int { return cmp.Compare(a.from, b.from) })
	for _, t := range r.Takeovers {
		if t.Election != name || t.Gap < 0 {
			continue
		}
		for i := range all {
			if l := &all[i]; l.host == t.Before && l.from < t.At && l.to > t.At {
				l.to = max(l.from, t.At-election.Instant(t.Gap))
			}
		}
	}
	return all
}

// ribbon draws who led, and for how long nobody did.
func (s scale) ribbon(all []lead, top float64) []piece {
	y, h := top+4, 16.0
	var pieces []piece
	reached := s.from
	add := func(from, to election.Instant, class, label, title string, least float64) {
		if !s.seen(from, to) || to <= from {
			return
		}
		p := s.place(from, to, y, h, least)
		p.class, p.title = class, title
		if p.w > letter*float64(len(label))+6 {
			p.label = label
		}
		pieces = append(pieces, p.inside())
	}
	for _, l := range all {
		if l.from > reached {
			add(reached, l.from, "nobody", seconds(l.from.Sub(reached)), "nobody led, "+s.span(reached, l.from), thinnest)
		}
		add(l.from, l.to, "led", l.host, fmt.Sprintf("%s led in term %d, %s", l.host, l.term, s.span(l.from, l.to)), thinnest)
		reached = max(reached, l.to)
	}
	if reached < s.to {
		add(reached, s.to, "nobody", seconds(s.to.Sub(reached)), "nobody led, "+s.span(reached, s.to), thinnest)
	}
	return pieces
}

// steps draws the script's lines, each where it began.
func (s scale) steps(r *observe.Recording, bottom float64) []piece {
	var all []piece
	next := 0.0
	for _, step := range r.Steps {
		if step.From < s.from || step.From > s.to {
			continue
		}
		p := piece{x: s.x(step.From), y: 14, h: bottom - 14, title: fmt.Sprintf("line %d, at %s: %s", step.Line, s.since(step.From), step.Text)}
		if p.x >= next {
			p.label, p.labelX, p.labelY = fmt.Sprint(step.Line), p.x, 11
			next = p.x + letter*float64(len(p.label)) + 4
		}
		all = append(all, p)
	}
	return all
}

// ticks draws about nine round times.
func (s scale) ticks(top, bottom float64) []piece {
	from, to := s.from.Sub(s.zero).Seconds(), s.to.Sub(s.zero).Seconds()
	step := niceStep((to - from) / 9)
	unit, factor := "s", 1.0
	switch {
	case step < 0.1:
		unit, factor = "ms", 1000
	case to > 7200:
		unit, factor, step = "min", 1.0/60, 60*niceStep((to-from)/9/60)
	}
	var all []piece
	for v := math.Ceil(from/step) * step; v <= to && len(all) < 40; v += step {
		at := s.zero.Add(time.Duration(math.Round(v * float64(time.Second))))
		x, text := s.x(at), fmt.Sprintf("%s %s", short(math.Round(v/step)*step*factor+0), unit)
		all = append(all, piece{x: x, y: top, h: bottom - top, label: text, labelX: x, labelY: bottom + 16})
	}
	return all
}

// elections returns the names of the elections in a recording, the one with the most changes
// first.
func elections(r *observe.Recording) []string {
	changes := map[string]int{}
	for _, h := range r.Hosts {
		for _, s := range h.Spans {
			changes[s.Election]++
		}
	}
	var names []string
	for name := range changes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(changes[b], changes[a]), cmp.Compare(a, b)) })
	return names
}
