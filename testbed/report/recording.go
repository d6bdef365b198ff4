package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/observe"
	"github.com/doyen-election/doyen/testbed/spacetime"
)

// maxMarks bounds the marks of a diagram: soaks have many thousands of changes.
const maxMarks = 600

// recorded is one election of a recording as a diagram.
type recorded struct {
	spacetime.Diagram
	r    *observe.Recording
	name string // of the election
	lane map[string]int
}

// drawElection draws what happened in one election of a recording.
func drawElection(r *observe.Recording, name string) spacetime.Diagram {
	d := recorded{Diagram: spacetime.Diagram{Title: name}, r: r, name: name, lane: map[string]int{}}
	d.To = d.at(max(r.To, r.From+1))
	led := leaderships(r, name)
	for i, h := range r.Hosts {
		text := h.Name
		if !h.Voter {
			text += " (no vote)"
		}
		d.lane[h.Name], d.Lanes = i, append(d.Lanes, text)
		d.states(i, h)
	}
	for _, l := range led {
		d.bar(l, fmt.Sprintf("leads %s in term %d", name, l.term), false)
		if l.silent {
			d.mark(l.host, l.to, spacetime.Text, "reports nothing, and its lease has expired")
		}
	}
	for _, p := range r.Programs {
		if p.Election == name {
			d.bar(lead{host: p.Host, term: p.Term, from: p.From, to: p.To}, fmt.Sprintf("program %s acts in term %d", p.Program, p.Term), true)
		}
	}
	d.nobody(led)
	d.faults()
	for _, s := range r.Steps {
		d.mark("", s.From, spacetime.Text, s.Text)
	}
	for _, o := range r.Overlaps {
		if o.Election == name {
			d.mark("", o.From, spacetime.Violation, fmt.Sprintf("two leaders: %s and %s both led, as %s reported, for %s", o.First, o.Second, o.By, seconds(o.To.Sub(o.From))))
		}
	}
	d.thin()
	return d.Diagram
}

func (d *recorded) at(t election.Instant) time.Duration { return t.Sub(d.r.From) }

// mark adds a mark to the lane of a host. If host is "", the mark belongs to no lane.
func (d *recorded) mark(host string, at election.Instant, kind spacetime.MarkKind, text string) {
	lane, known := d.lane[host]
	if !known {
		lane = -1
	}
	d.Marks = append(d.Marks, spacetime.Mark{Lane: lane, At: d.at(at), Kind: kind, Text: text})
}

// states adds what a host's agent reported, and when the agent's process was up.
func (d *recorded) states(lane int, h observe.HostRecord) {
	up := false
	for _, s := range h.Spans {
		if s.Election != d.name {
			continue
		}
		was := up
		if up = s.State != observe.StateDown; up && !was {
			d.Lives = append(d.Lives, spacetime.Span{Lane: lane, From: d.at(s.From), To: spacetime.Never, Text: h.Name})
		} else if was && !up {
			d.Lives[len(d.Lives)-1].To = d.at(s.From)
		}
		kind := spacetime.Note
		switch s.State {
		case api.StateLeading, api.StateFollowing:
			kind = spacetime.Leader
		case observe.StateDown:
			kind = spacetime.Text
		}
		d.mark(h.Name, s.From, kind, s.String())
	}
}

func (d *recorded) bar(l lead, text string, acts bool) {
	d.Bars = append(d.Bars, spacetime.Bar{Label: fmt.Sprintf("T%d", l.term), Acts: acts, Lease: d.at(l.to),
		Span: spacetime.Span{Lane: d.lane[l.host], From: d.at(l.from), To: d.at(l.to), Text: text}})
}

// nobody adds the stretches without a leader.
func (d *recorded) nobody(led []lead) {
	reached := d.r.From
	for _, l := range append(led, lead{from: d.r.To}) {
		if l.from > reached {
			d.mark("", reached, spacetime.Text, "nobody leads for "+seconds(l.from.Sub(reached)))
		}
		reached = max(reached, l.to)
	}
}

// faults adds each fault to every host that it hit.
func (d *recorded) faults() {
	for _, f := range d.r.Faults {
		text := f.What
		if f.Detail != "" {
			text += ", " + f.Detail
		}
		if len(f.Peers) > 0 {
			text += ": " + strings.Join(f.Where, ", ") + " and " + strings.Join(f.Peers, ", ")
		}
		for _, host := range f.Where {
			d.mark(host, f.From, spacetime.Fault, text)
			if f.To < d.r.To {
				d.mark(host, f.To, spacetime.Note, f.What+" ends")
			}
			if f.What == "freeze" && f.Program == "" {
				d.Pauses = append(d.Pauses, spacetime.Span{Lane: d.lane[host], From: d.at(f.From), To: d.at(f.To)})
			}
		}
	}
}

// thin removes marks if there are too many. It first removes all that are not about leaders, faults
// or overlaps. Then it lets the diagram begin later, but not after the first overlap.
func (d *recorded) thin() {
	d.Marks = slices.DeleteFunc(d.Marks, func(m spacetime.Mark) bool { return m.At < d.From || m.At > d.To })
	if len(d.Marks) > maxMarks {
		d.Marks = slices.DeleteFunc(d.Marks, func(m spacetime.Mark) bool { return m.Kind == spacetime.Note || m.Kind == spacetime.Text })
	}
	slices.SortStableFunc(d.Marks, func(a, b spacetime.Mark) int { return cmp.Compare(a.At, b.At) })
	if n := len(d.Marks) - maxMarks; n > 0 {
		from := d.Marks[n].At
		for _, m := range d.Marks {
			if m.Kind == spacetime.Violation {
				from = min(from, m.At)
			}
		}
		d.From, d.Facts = from, append(d.Facts, "Drawn from "+seconds(from)+" on.")
	}
}

type lead struct {
	host     string
	term     uint64
	from, to election.Instant
	silent   bool // its agent was frozen, and could not report the end of its lease
}

// leaderships returns the leaderships of one election, in the order of their beginnings. Each ends when its
// agent reports the end. A frozen agent reports the end too late, so its leadership ends with its lease.
func leaderships(r *observe.Recording, name string) []lead {
	var all []lead
	for _, h := range r.Hosts {
		for _, span := range h.Spans {
			if span.Election == name && span.State == api.StateLeading {
				all = append(all, lead{host: h.Name, term: span.Term, from: span.From, to: span.To})
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
				l.to, l.silent = max(l.from, t.At-election.Instant(t.Gap)), true
			}
		}
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
	return slices.SortedFunc(maps.Keys(changes), func(a, b string) int {
		return cmp.Or(cmp.Compare(changes[b], changes[a]), cmp.Compare(a, b))
	})
}

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
