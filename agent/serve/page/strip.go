package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
)

// stripTime is how much of the past the status page draws.
const stripTime = time.Hour

// tickTime is the longest time without a leader that is drawn as a thin tick, about a pixel wide.
const tickTime = 30 * time.Second

// part is a piece of an election's last hour, in which the same agent led, or nobody led.
type part struct {
	Leader string // empty: nobody
	Known  bool   // false: before this agent's first entry
	For    time.Duration
}

// look returns the part's class in the page's style, and the text that the part shows. names are the names of
// all leaders, sorted.
func (p part) look(names []string) (class, what string) {
	switch {
	case !p.Known:
		return "unknown", "not known"
	case p.Leader == "" && p.For < tickTime:
		return "tick", "nobody"
	case p.Leader == "":
		return "nobody", "nobody"
	}
	return fmt.Sprint("l", slices.Index(names, p.Leader)%6), p.Leader
}

// loss is a text about how long nobody led in the time of which this agent knows.
func loss(parts []part) string {
	var lost, known time.Duration
	for _, p := range parts {
		if p.Known {
			known += p.For
		}
		if p.Known && p.Leader == "" {
			lost += p.For
		}
	}
	switch {
	case known == 0:
		return ""
	case lost == 0:
		return "led without a break for " + pageDuration(known.Milliseconds())
	}
	return "nobody for " + pageDuration(lost.Milliseconds()) + " of " + pageDuration(known.Milliseconds())
}

// strip draws the last hour of one election from its changes, the oldest first. It uses wall-clock
// time, since the changes may be from several boots.
func strip(changes []api.Transition, now time.Time) []part {
	var parts []part
	begin := now.Add(-stripTime)
	last, at := part{}, begin
	until := func(end time.Time) { // adds the part up to end, as the variable last describes it
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
		if gap := time.Duration(c.GapMS) * time.Millisecond; gap > 0 && c.Leader != nil {
			until(c.Time.Add(-gap))
			last = part{Known: true}
		}
		until(c.Time)
		if last = (part{Known: true}); c.Leader != nil {
			last.Leader = c.Leader.Name
		}
	}
	until(now)
	return parts
}

// join appends c to the earlier changes of its election. If this agent was restarted, and then heard the
// same leader in the same term as before, the leadership was not interrupted: join removes the restarts.
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

// ledSince is since when the newest change's leader has led without a pause. certain is false if that
// leader may have led before this agent's first entry too. The changes are of one election, the oldest first.
func ledSince(changes []api.Transition) (since time.Time, certain bool) {
	for _, c := range slices.Backward(changes) {
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

// changes puts the newest changes into sentences, the newest first. The end of a leadership and
// the next leader are one sentence. A reader can unfold what this agent knew at the time.
func (f Facts) changes() (list raw) {
	texts, evidence := make([]string, len(f.Past)), make([]string, len(f.Past))
	former, ended := map[string]string{}, map[string]int{} // by election: which agent led, and which entry of f.Past ended that
	for i, t := range f.Past {
		texts[i], evidence[i] = t.Reason, t.Evidence
		switch end, over := ended[t.Election]; {
		case t.Type == api.ChangeCommand || t.Type == api.ChangeRestarted || t.Election == "":
		case t.Leader == nil:
			texts[i], ended[t.Election] = "nobody leads "+t.Election+": "+t.Reason, i
		default:
			var why []string
			if over {
				why, evidence[i] = append(why, f.Past[end].Reason), evidence[end]+"; then: "+t.Evidence
				texts[end] = ""
				delete(ended, t.Election)
			}
			if t.GapMS > 0 {
				why = append(why, "nobody led for "+pageDuration(t.GapMS))
			}
			name, after := t.Leader.Name, former[t.Election]
			if texts[i] = name + " leads " + t.Election; after != "" && after != name {
				texts[i] += " after " + after
			}
			texts[i] = strings.TrimSuffix(texts[i]+": "+strings.Join(why, ", "), ": ")
			former[t.Election] = name
		}
	}
	shown := 0
	for i, t := range slices.Backward(f.Past) {
		if texts[i] != "" && shown < pageHistory {
			list += put("<details id=\"c%v\"><summary>%s <span>%s</span></summary><p>term %v: %s</p></details>\n", t.Time.UnixNano(), stamp(t.Time), texts[i], t.Term, evidence[i])
			shown++
		}
	}
	return list
}
