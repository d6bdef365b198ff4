package page

import (
	"time"

	"github.com/doyen-election/doyen/api"
)

// stripTime is how much of the past the status page draws.
const stripTime = time.Hour

// part is a piece of an election's last hour, in which the same agent led, or nobody.
type part struct {
	Leader string // empty: nobody
	Known  bool   // false: before this agent's first entry
	For    time.Duration
}

// PerMille is the part's length in thousandths of the strip.
func (p part) PerMille() int64 { return int64(1000 * p.For / stripTime) }

// Class is how the part looks.
func (p part) Class() string {
	switch {
	case !p.Known:
		return "unknown"
	case p.Leader == "":
		return "nobody"
	}
	sum := uint32(2166136261) // FNV-1a: on all pages the same leader has the same colour
	for _, b := range []byte(p.Leader) {
		sum = (sum ^ uint32(b)) * 16777619
	}
	return "l" + string('0'+rune(sum%6))
}

// Title is what a person reads who points at the part.
func (p part) Title() string {
	who := p.Leader
	switch {
	case !p.Known:
		who = "not known"
	case who == "":
		who = "nobody"
	}
	return who + " for " + pageDuration(p.For.Milliseconds())
}

// strip draws the last hour of one election from its changes, the oldest first. It goes by the
// time of day: changes may be of another boot.
func strip(changes []api.Transition, now time.Time) []part {
	var parts []part
	begin := now.Add(-stripTime)
	last, at := part{}, begin
	until := func(end time.Time) { // what was so before lasted until then
		if end.After(now) {
			end = now
		}
		if !end.After(at) {
			return
		}
		if n := len(parts); n > 0 && parts[n-1].Leader == last.Leader && parts[n-1].Known == last.Known {
			parts[n-1].For += end.Sub(at)
		} else {
			last.For = end.Sub(at)
			parts = append(parts, last)
		}
		at = end
	}
	for _, c := range changes {
		when := c.Time
		if c.Leader == nil {
			until(when)
			last = part{Known: true}
			continue
		}
		if gap := time.Duration(c.GapMS) * time.Millisecond; gap > 0 {
			until(when.Add(-gap))
			last = part{Known: true}
		}
		until(when)
		last = part{Known: true, Leader: c.Leader.Name}
	}
	until(now)
	return parts
}

// join appends a change to those of its election. Where this agent was restarted and then heard
// the leader and the term of before, nothing has changed: the restarts between the two are removed.
func join(changes []api.Transition, c api.Transition) []api.Transition {
	n := len(changes)
	for n > 0 && changes[n-1].Type == api.ChangeRestarted && changes[n-1].Leader == nil {
		n--
	}
	if n > 0 && c.Leader != nil && changes[n-1].Leader != nil && changes[n-1].Leader.ID == c.Leader.ID && changes[n-1].Term == c.Term {
		changes = changes[:n]
	}
	return append(changes, c)
}

// ledSince is since when the newest change's leader has led without a pause; certain is
// false if it may have led before this agent's first entry. The changes are of one election,
// the oldest first.
func ledSince(changes []api.Transition) (since time.Time, certain bool) {
	for i := len(changes) - 1; i >= 0; i-- {
		c := changes[i]
		if c.Leader == nil || c.Leader.Name != changes[len(changes)-1].Leader.Name {
			return since, true
		}
		since = c.Time
		if c.GapMS > 0 {
			return since, true
		}
	}
	return since, false
}
