package live

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/testbed/hosts"
)

type paint string

const (
	none   paint = ""
	bold   paint = "1"
	faint  paint = "2"
	red    paint = "31"
	green  paint = "32"
	yellow paint = "33"
	cyan   paint = "36"
)

var moodPaint = map[Mood]paint{Plain: none, Good: green, Bad: red, Faint: faint}

// span is text in one colour; a row is a line of the screen.
type span struct {
	paint paint
	text  string
}

type row []span

// Render draws the model as at most height lines of at most width columns. Colour only repeats
// what the text says.
func Render(m Model, width, height int, colour bool) []string {
	head := slices.Concat(title(m), leadership(m), agents(m))
	foot := slices.Concat(asking(m), keys(m))
	room := max(0, height-len(head)-len(foot)-1)
	rows := slices.Concat(head, []row{{}}, lines(m, room), foot)
	if len(rows) > height {
		rows = rows[:max(0, height)]
	}
	drawn := make([]string, len(rows))
	for i, r := range rows {
		drawn[i] = r.draw(width, colour)
	}
	return drawn
}

// draw cuts the row to the width and colours it.
func (r row) draw(width int, colour bool) string {
	var out strings.Builder
	for _, s := range r {
		text := s.text
		if n := utf8.RuneCountInString(text); n > width {
			text = string([]rune(text)[:width])
		}
		width -= utf8.RuneCountInString(text)
		if colour && s.paint != none && text != "" {
			text = "\x1b[" + string(s.paint) + "m" + text + "\x1b[0m"
		}
		out.WriteString(text)
	}
	return strings.TrimRight(out.String(), " ")
}

func title(m Model) []row {
	authority := "majority"
	if !m.Quorum {
		authority = "no quorum: one leader per partition"
	}
	return []row{
		{
			{bold, "Doyen testbed"},
			{none, fmt.Sprintf("  %d agents · %s · %s · heartbeat %s, lease %s · ", len(m.Agents), m.Algorithm, authority, m.Heartbeat, m.Lease)},
			{faint, clock(m.Elapsed)},
		},
		{},
	}
}

// barWidth is the width of the lease's bar, in columns.
const barWidth = 30

func leadership(m Model) []row {
	first := row{{none, "  leader    "}, {red, "nobody"}}
	switch {
	case m.Leader != "" && m.Quorum && m.Remaining <= 0:
		first = append(first, span{faint, fmt.Sprintf("  the lease of %s, term %d, has ended", m.Leader, m.Term)})
	case m.Leader != "":
		first = row{{none, "  leader    "}, {green, fmt.Sprintf("%-10s", m.Leader)}, {none, fmt.Sprintf("  term %-5d", m.Term)}}
		if m.Quorum {
			full := int(barWidth * min(max(m.Remaining, 0), m.Lease) / max(m.Lease, 1))
			first = append(first, span{none, "  lease "}, span{green, strings.Repeat("█", full)},
				span{faint, strings.Repeat("░", barWidth-full)}, span{none, fmt.Sprintf(" %d ms", max(m.Remaining, 0).Milliseconds())})
		}
	}
	rows := []row{first, {{faint, "  takeover  none yet: press l to lose the leader's host"}}}
	if len(m.Takeovers) > 0 {
		rows[1] = spread("takeover", m.Takeovers)
	}
	if len(m.HandOvers) > 0 {
		rows = append(rows, spread("hand-over", m.HandOvers))
	}
	if m.Together > 0 {
		rows = append(rows, row{{red, fmt.Sprintf("  two leaders at once: %s", ms(m.Together))}})
	}
	return append(rows, row{})
}

func spread(of string, all []time.Duration) row {
	return row{
		{none, fmt.Sprintf("  %-9s last ", of)}, {bold, ms(all[len(all)-1])},
		{none, fmt.Sprintf(", best %s, worst %s, of %d", ms(slices.Min(all)), ms(slices.Max(all)), len(all))},
	}
}

func agents(m Model) []row {
	rows := []row{{{faint, fmt.Sprintf("     %-9s %-9s %-11s %-9s %-6s %s", "AGENT", "PROCESS", "STATE", "LEADER", "TERM", "ADDRESS")}}}
	for i, a := range m.Agents {
		mark, name := "   ", none
		if i == m.Selected {
			mark, name = " ▸ ", bold
		}
		state, paint := stateText(a)
		rows = append(rows, row{
			{none, fmt.Sprintf("%s%-2s", mark, digit(i))},
			{name, fmt.Sprintf("%-9s ", a.Name)},
			{statusPaint(a.Status), fmt.Sprintf("%-9s ", a.Status)},
			{paint, fmt.Sprintf("%-11s ", state)},
			{none, fmt.Sprintf("%-9s %-6s %s", dash(a.Follows), number(a.Term), a.Addr)},
		})
	}
	return rows
}

// digit is the key that selects the i-th agent, "" if there is none.
func digit(i int) string {
	if i > 8 {
		return ""
	}
	return fmt.Sprint(i + 1)
}

func stateText(a Row) (string, paint) {
	switch {
	case a.Status == hosts.Down:
		return "-", faint
	case a.Status == hosts.Frozen:
		return "(" + dash(strings.ReplaceAll(a.State, "_", " ")) + ")", yellow // the state from before
	case a.State == "":
		return "starting", yellow
	}
	switch a.State {
	case api.StateLeading:
		return "leading", green
	case api.StateFollowing:
		return "following", none
	case api.StateNoQuorum:
		return "no quorum", red
	}
	return a.State, yellow
}

func statusPaint(s hosts.Status) paint {
	switch s {
	case hosts.Down:
		return red
	case hosts.Frozen:
		return yellow
	}
	return none
}

// lines shows as many of the newest lines as there is room for.
func lines(m Model, room int) []row {
	shown := m.Lines[max(0, len(m.Lines)-room):]
	rows := make([]row, 0, room)
	for _, l := range shown {
		rows = append(rows, row{{faint, fmt.Sprintf("  %8.3f  ", l.At.Seconds())}, {moodPaint[l.Mood], l.Text}})
	}
	for len(rows) < room {
		rows = append(rows, row{})
	}
	return rows
}

func asking(m Model) []row {
	if m.Selected >= len(m.Agents) {
		return nil
	}
	s := m.Agents[m.Selected].Socket
	return []row{
		{},
		{{faint, "  ask it    "}, {none, m.Ask + " leader --socket " + s}},
		{{none, "            curl --unix-socket " + s + " http://d/v1/elections/default"}},
	}
}

func keys(m Model) []row {
	return []row{
		{{faint, fmt.Sprintf("  agent     1-%d select · k kill -9 · t terminate · r restart · g resign · q quit", min(9, len(m.Agents)))}},
		{{faint, "  host      d lose it · l lose the leader's · s stop · c continue · x cut off · h heal"}},
	}
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// ms writes a measured time with the precision that means something.
func ms(d time.Duration) string {
	switch {
	case d == 0:
		return "0 ms"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func number(n uint64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

type Model struct {
	Agents    []Row
	Algorithm string
	Profile   string
	Quorum    bool
	Heartbeat time.Duration
	Lease     time.Duration
	Elapsed   time.Duration
	Leader    string // "": no agent reports that it leads
	Term      uint64
	Remaining time.Duration   // of the leader's lease
	Takeovers []time.Duration // from the fault to the next leader
	HandOvers []time.Duration // the same, where the leader was asked to hand over
	Together  time.Duration   // how long two agents led at once
	Selected  int             // index into Agents
	Lines     []Line          // oldest first
	Ask       string          // how to run the doyen command here
}

type Row struct {
	Name    string
	Status  hosts.Status
	State   string // one of api's State constants, "" if the agent does not answer
	Follows string
	Term    uint64
	Addr    string
	Socket  string
}

// Mood is what a line is about. It decides the line's colour.
type Mood int

const (
	Plain Mood = iota
	Good       // an agent leads, all agree
	Bad        // a fault, a failure
	Faint      // less important
)

type Line struct {
	At   time.Duration // since the start
	Mood Mood
	Text string
}
