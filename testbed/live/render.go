package live

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/testbed/hosts"
)

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
	Remaining time.Duration // of the leader's lease
	Summary   []string      // what happened so far
	Selected  int           // index into Agents
	Lines     []Line        // oldest first
	Ask       string        // how to run the doyen command here
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

// Mood is the kind of a line, as the code of a terminal's colour. The colour only repeats what is
// in the text.
type Mood string

const (
	Plain  Mood = ""
	Bold   Mood = "1"
	Faint  Mood = "2"  // less important
	Bad    Mood = "31" // a fault, a failure
	Good   Mood = "32" // an agent leads, all agree
	Unsure Mood = "33"
)

type Line struct {
	At   time.Duration // since the start
	Mood Mood
	Text string
}

// Render draws the model as at most height lines of at most width columns.
func Render(m Model, width, height int, colour bool) []string {
	authority := "majority"
	if !m.Quorum {
		authority = "no quorum: one leader per partition"
	}
	all := []Line{
		{Mood: Bold, Text: fmt.Sprintf("Doyen testbed  %d agents · %s · %s · heartbeat %s, lease %s · %d:%02d", len(m.Agents), m.Algorithm,
			authority, m.Heartbeat, m.Lease, int(m.Elapsed.Minutes()), int(m.Elapsed.Seconds())%60)},
		{}, m.leadership(),
	}
	for _, s := range m.Summary {
		all = append(all, Line{Text: "  " + s})
	}
	all = append(all, Line{}, Line{Mood: Faint, Text: fmt.Sprintf(rowFormat, "", "", "AGENT", "PROCESS", "STATE", "LEADER", "TERM", "ADDRESS")})
	for i, a := range m.Agents {
		all = append(all, a.line(i, i == m.Selected))
	}
	all = append(all, Line{})
	foot := m.foot()
	room := max(0, height-len(all)-len(foot))
	shown := m.Lines[max(0, len(m.Lines)-room):]
	for _, l := range shown {
		all = append(all, Line{Mood: l.Mood, Text: fmt.Sprintf("  %8.3f  %s", l.At.Seconds(), l.Text)})
	}
	all = append(append(all, make([]Line, room-len(shown))...), foot...)
	var drawn []string
	for _, l := range all[:min(len(all), height)] {
		text := []rune(strings.TrimRight(l.Text, " "))
		cut := string(text[:min(len(text), width)])
		if colour && l.Mood != Plain && cut != "" {
			cut = "\x1b[" + string(l.Mood) + "m" + cut + "\x1b[0m"
		}
		drawn = append(drawn, cut)
	}
	return drawn
}

// barWidth is the width of the lease's bar, in columns.
const barWidth = 30

func (m Model) leadership() Line {
	switch {
	case m.Leader == "":
		return Line{Mood: Bad, Text: "  leader    nobody"}
	case m.Quorum && m.Remaining <= 0:
		return Line{Mood: Bad, Text: fmt.Sprintf("  leader    nobody  the lease of %s, term %d, has ended", m.Leader, m.Term)}
	}
	text := fmt.Sprintf("  leader    %-10s  term %-5d", m.Leader, m.Term)
	if m.Quorum {
		full := int(barWidth * min(m.Remaining, m.Lease) / max(m.Lease, 1))
		text += "  lease " + strings.Repeat("█", full) + strings.Repeat("░", barWidth-full) + fmt.Sprintf(" %d ms", m.Remaining.Milliseconds())
	}
	return Line{Mood: Good, Text: text}
}

const rowFormat = "%2s %-2s%-9s %-9s %-11s %-9s %-6s %s"

// line is an agent's row. Each of the first nine rows shows the digit that selects it.
func (a Row) line(i int, selected bool) Line {
	mark, digit, term := "", "", ""
	if selected {
		mark = "▸"
	}
	if i < 9 {
		digit = fmt.Sprint(i + 1)
	}
	if a.Term > 0 {
		term = fmt.Sprint(a.Term)
	}
	l := Line{Mood: map[string]Mood{api.StateLeading: Good, api.StateFollowing: Plain, api.StateNoQuorum: Bad, "": Unsure, api.StateElecting: Unsure}[a.State]}
	state := strings.ReplaceAll(cmp.Or(a.State, "starting"), "_", " ")
	switch a.Status {
	case hosts.Down:
		state, l.Mood = "-", Bad
	case hosts.Frozen:
		state, l.Mood = "("+state+")", Unsure // the last known state
	}
	l.Text = fmt.Sprintf(rowFormat, mark, digit, a.Name, a.Status, state, cmp.Or(a.Follows, "-"), cmp.Or(term, "-"), a.Addr)
	return l
}

func (m Model) foot() (lines []Line) {
	if m.Selected < len(m.Agents) {
		s := m.Agents[m.Selected].Socket
		lines = []Line{{}, {Text: "  ask it    " + m.Ask + " leader --socket " + s},
			{Text: "            curl --unix-socket " + s + " http://d/v1/elections/default"}}
	}
	return append(lines,
		Line{Mood: Faint, Text: fmt.Sprintf("  agent     1-%d select · k kill -9 · t terminate · r restart · g resign · q quit", min(9, len(m.Agents)))},
		Line{Mood: Faint, Text: "  host      d lose it · l lose the leader's · s stop · c continue"})
}

// ms writes a measured time without digits that mean nothing.
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
