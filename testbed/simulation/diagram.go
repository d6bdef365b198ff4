package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/doyen-election/doyen/testbed/spacetime"
)

// A diagram shows at most so many messages, heartbeats aside, and so many heartbeats: the
// newest.
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
			if b.To >= h.To { // a rival still leads: show until when
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

// begin returns when the drawn part of the run begins: late enough that a person can look at
// everything in it.
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
