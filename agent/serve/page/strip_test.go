package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
)

// drawn writes a strip as "LEADER SECONDS" pieces.
func drawn(parts []part) string {
	var all []string
	for _, p := range parts {
		who := p.Leader
		if !p.Known {
			who = "?"
		}
		all = append(all, fmt.Sprintf("%s %.0f", who, p.For.Seconds()))
	}
	return strings.Join(all, ", ")
}

func TestTheStripDrawsTheLastHour(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(minutes int64, leader string, gap time.Duration) api.Transition {
		c := api.Transition{Time: start.Add(time.Duration(minutes) * time.Minute), GapMS: gap.Milliseconds()}
		if leader != "" {
			c.Leader = &api.Leader{Name: leader, ID: leader}
		}
		return c
	}
	restarted := func(minutes int64) api.Transition {
		c := at(minutes, "", 0)
		c.Type = api.ChangeRestarted
		return c
	}
	now := start.Add(100 * time.Minute) // so the strip begins at minute 40
	for _, c := range []struct {
		name, want, since string
		changes           []api.Transition
	}{
		{"no change", "? 3600", "", nil},
		{"one leader from before the hour on", "a 3600", "10m0s", []api.Transition{at(10, "a", time.Second)}},
		{"what came before the first entry is not known", "? 1200, a 2400", "at least 1h0m0s", []api.Transition{at(60, "a", 0)}},
		{"a gap that nobody saw begin", "a 2399,  1, b 1200", "1h20m0s", []api.Transition{at(10, "a", 0), at(80, "b", time.Second)}},
		{"a gap that is still open", "a 2400,  1200", "", []api.Transition{at(10, "a", 0), at(80, "", 0)}},
		{"a gap that an entry began", "a 1200,  60, b 2340", "1h1m0s", []api.Transition{at(10, "a", 0), at(60, "", 0), at(61, "b", time.Minute)}},
		{"an agent that was restarted leads on", "a 3600", "20m0s", []api.Transition{at(20, "a", time.Second), at(70, "a", 0)}},
		{"a follower that was restarted twice hears its leader again", "a 3600", "20m0s", []api.Transition{at(20, "a", time.Second), restarted(60), restarted(61), at(62, "a", 0)}},
		{"a follower that was restarted hears another leader", "a 1200,  120, b 2280", "1h2m0s", []api.Transition{at(20, "a", time.Second), restarted(60), at(62, "b", time.Minute)}},
		{"a follower that was restarted hears nobody", "a 1200,  2400", "", []api.Transition{at(20, "a", time.Second), restarted(60)}},
		{"a gap that began before the hour", " 1200, b 2400", "1h0m0s", []api.Transition{at(10, "a", 0), at(60, "b", 50*time.Minute)}},
		{"an entry of the future, of another clock", "a 3600", "3h0m0s", []api.Transition{at(10, "a", 0), at(180, "b", 0)}},
	} {
		var joined []api.Transition
		for _, change := range c.changes {
			joined = join(joined, change)
		}
		c.changes = joined
		parts := strip(c.changes, now)
		if got := drawn(parts); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		since := ""
		if n := len(c.changes); n > 0 && c.changes[n-1].Leader != nil {
			at, certain := ledSince(c.changes)
			since = at.Sub(start).String()
			if !certain {
				since = "at least " + since
			}
		}
		if since != c.since {
			t.Errorf("%s: led since %q, want %q", c.name, since, c.since)
		}
	}
}

func TestALossTooShortToDrawIsATickAndIsSummedUp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := Facts{Now: now, Members: []api.Member{{Name: "a"}, {Name: "b"}}, Elections: []api.Election{{Election: "default"}}}
	led := func(ago time.Duration, who string, gap time.Duration) api.Transition {
		return api.Transition{Time: now.Add(-ago), Election: "default", Leader: &api.Leader{Name: who, ID: who}, GapMS: gap.Milliseconds()}
	}
	for _, c := range []struct {
		past         []api.Transition
		drawn, loss  string
		ticks, plain int
	}{
		{nil, `class="unknown" style="flex-grow: 3600" title="not known for 60 min"`, "", 0, 0},
		{[]api.Transition{led(2*time.Hour, "a", 0)}, `class="l0" style="flex-grow: 3600" title="a for 60 min">a<`, "led without a break for 60 min", 0, 0},
		{[]api.Transition{led(25*time.Minute+30*time.Second, "a", 0), led(9*time.Minute, "b", 1150*time.Millisecond), led(time.Minute, "a", 450*time.Millisecond)},
			`class="tick" style="flex-grow: 0.45" title="nobody for 450 ms">`, "nobody for 1.6 s of 25 min", 2, 0},
		{[]api.Transition{led(2*time.Hour, "a", 0), led(time.Minute, "b", 2*time.Minute)}, `class="nobody" style="flex-grow: 120" title="nobody for 2.0 min">`, "nobody for 2.0 min of 60 min", 0, 1},
	} {
		f.Past = c.past
		r := f.rows()[0]
		drawn := string(r.strip())
		if got := loss(r.hour); !strings.Contains(drawn, c.drawn) || got != c.loss || strings.Count(drawn, `"tick"`) != c.ticks || strings.Count(drawn, `"nobody"`) != c.plain {
			t.Errorf("got %q, want %q and %q:\n%s", got, c.drawn, c.loss, drawn)
		}
	}
}
