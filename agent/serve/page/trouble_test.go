package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
)

// The page of any agent shows what is wrong, and on which hosts.
func TestThePageShowsWhatIsWrongOnEveryHost(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	up := func(name string, change func(*api.Member)) api.Member {
		m := api.Member{Name: name, ID: "id-" + name, Status: api.StatusAlive, Voter: true, Connected: true}
		change(&m)
		return m
	}
	as := func(*api.Member) {}
	edge := func(at time.Duration) api.Warning {
		return api.Warning{Code: "quorum_edge", Message: "bring b back", Since: start.Add(at)}
	}
	f := Facts{
		Agent:     api.Agent{Name: "a", Warnings: []api.Warning{edge(time.Minute)}},
		Elections: []api.Election{{Election: "default", State: api.StateIdle}, {Election: "payments", State: api.StateElecting}},
		Missing:   []string{"b", "d", "g"}, // after a restart, the agent's gossip may not know g
		Members: []api.Member{up("a", as), up("b", func(m *api.Member) { m.Status, m.Connected = api.StatusDead, false }),
			up("c", func(m *api.Member) { m.Drained = true }), up("d", func(m *api.Member) { m.Connected = false }),
			up("e", func(m *api.Member) { m.Status = api.StatusDead }), up("e", func(m *api.Member) { m.ID = "id-e2" }), // e is back under another identity
			up("f", func(m *api.Member) { m.Status = api.StatusLeft; m.Drained = true })},
		Others: []api.AgentReport{{Name: "c", Reached: true, Warnings: []api.Warning{edge(0), {Code: "disk_failing", Message: "disk"}, {Code: "drained", Message: "for a day"}}},
			{Name: "d", ID: "id-d"}, {Name: "b", ID: "id-b"}},
	}
	var got []string
	for _, p := range f.troubles() {
		text, _, _ := strings.Cut(strings.NewReplacer(";", ":", ",", ":").Replace(p.text), ":")
		got = append(got, fmt.Sprint(p.class, " ", strings.Join(p.hosts, ","), " ", text))
		if p.text == "bring b back" && !p.since.Equal(start) {
			t.Errorf("since %v, want the earliest", p.since)
		}
	}
	want := []string{"bad b,d,g no answer", "bad payments nobody leads this election", "bad c disk", "warn c drained", "warn a,c bring b back"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	page := string(f.attention())
	for _, want := range []string{`#warnings:~:text=disk_failing">what to do about disk_failing</a>`, "doyen drain off c", "Asked for warnings: a, c."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	f = Facts{Agent: api.Agent{Name: "a"}}
	if page := string(f.attention()); !strings.Contains(page, "Nothing needs attention.") || !strings.Contains(page, "Asked for warnings: a.") {
		t.Errorf("with nothing wrong: %s", page)
	}
}

// The page shows each change as a sentence. A reader can open what this agent knew at the time.
func TestChangesAreSentences(t *testing.T) {
	a, b := &api.Leader{Name: "a", ID: "a"}, &api.Leader{Name: "b", ID: "b"}
	f := Facts{Past: []api.Transition{
		{Election: "x", Type: api.ChangeLeader, Leader: a, Term: 1, Reason: "elected", Evidence: "a claims term 1"},
		{Election: "x", Type: api.ChangeNoLeader, Term: 1, Reason: "lease expired", Evidence: "last heard 1 s earlier"},
		{Election: "x", Type: api.ChangeLeader, Leader: b, Term: 2, GapMS: 1600, Reason: "elected", Evidence: "b claims term 2"},
		{Election: "x", Type: api.ChangeTerm, Leader: b, Term: 3},
		{Election: "x", Type: api.ChangeCommand, Leader: b, Term: 3, Reason: "resign, asked by root"},
		{Election: "x", Type: api.ChangeRestarted, Reason: "agent restarted"},
		{Election: "x", Type: api.ChangeNoLeader, Term: 3, Reason: "resigned"},
	}}
	page, want := string(f.changes()), []string{"nobody leads x: resigned", "agent restarted", "resign, asked by root", "b leads x", "b leads x after a: lease expired, nobody led for 1.6 s", "a leads x"}
	var got []string
	for _, line := range strings.SplitAfter(page, "</summary>") {
		if _, text, ok := strings.Cut(strings.TrimSuffix(line, "</span></summary>"), "</time> <span>"); ok {
			got = append(got, text)
		}
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
	if !strings.Contains(page, "1.6 s</span></summary><p>term 2: last heard 1 s earlier; then: b claims term 2</p>") {
		t.Errorf("the evidence is not behind its change:\n%s", page)
	}
}
