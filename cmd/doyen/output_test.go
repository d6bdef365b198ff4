package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
)

func TestColourNeedsATerminalAndLeave(t *testing.T) {
	tests := []struct {
		name     string
		terminal bool
		env      map[string]string
		want     bool
	}{
		{"terminal", true, nil, true},
		{"pipe", false, nil, false},
		{"NO_COLOR", true, map[string]string{"NO_COLOR": "1"}, false},
		{"NO_COLOR empty", true, map[string]string{"NO_COLOR": ""}, true},
		{"dumb terminal", true, map[string]string{"TERM": "dumb"}, false},
	}
	for _, test := range tests {
		got := wantsColour(test.terminal, func(name string) string { return test.env[name] })
		if got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// Without colour, the text must say the same. With colour, trouble must stand out.
func TestColourOnlyMarks(t *testing.T) {
	election := api.Election{Election: "leading", State: api.StateLeading, Leader: &api.Leader{Name: "a"}, Term: 7}
	lost := api.Election{Election: "no", State: api.StateNoQuorum}
	agent := api.Agent{Name: "a", Draining: true, Quorum: api.Quorum{Enabled: true, Voters: 3, Reachable: 1, State: api.QuorumLost},
		Warnings: []api.Warning{{Code: "disk", Message: "full", Since: time.Unix(0, 0)}}}
	now := time.Unix(75, 0)
	page := func(p palette) string { return statusPage(agent, []api.Election{election, lost}, p, now) }
	line := func(p palette) string {
		return changeLine(api.Change{Type: api.ChangeNoLeader, Election: "x", Time: now}, p)
	}
	for _, render := range []func(palette) string{page, line} {
		plain, coloured := render(palette{}), render(palette{on: true})
		if strings.Contains(plain, "\x1b") {
			t.Errorf("colour without leave: %q", plain)
		}
		if got := stripColour(coloured); got != plain {
			t.Errorf("colour changes the text:\n%s\nwant\n%s", got, plain)
		}
	}
	for _, want := range []string{"leading   \x1b[32mleading\x1b[0m", "\x1b[31mno_quorum\x1b[0m", "\x1b[31mlost\x1b[0m", "\x1b[33mwarning\x1b[0m"} {
		if got := page(palette{on: true}); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%q", want, got)
		}
	}
	if got := line(palette{on: true}); !strings.Contains(got, "\x1b[31mno_leader\x1b[0m") {
		t.Errorf("no red in %q", got)
	}
	if !strings.Contains(page(palette{}), "warning disk: full (for 1m15s)\n") {
		t.Errorf("no age of the warning in\n%s", page(palette{}))
	}
}

func stripColour(s string) string {
	for _, code := range []string{"\x1b[0m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"} {
		s = strings.ReplaceAll(s, code, "")
	}
	return s
}

func TestAge(t *testing.T) {
	tests := map[time.Duration]string{
		-time.Second:                  "0s",
		0:                             "0ms",
		812 * time.Millisecond:        "812ms",
		5900 * time.Millisecond:       "5s",
		192 * time.Second:             "3m12s",
		4*time.Hour + 5*time.Minute:   "4h5m",
		(12*24 + 3) * time.Hour:       "12d3h",
		48*time.Hour - time.Second:    "1d23h",
		1<<63 - 1:                     "106751d23h",
		time.Minute:                   "1m0s",
		time.Hour - time.Nanosecond:   "59m59s",
		time.Second - time.Nanosecond: "999ms",
	}
	for d, want := range tests {
		if got := age(d); got != want {
			t.Errorf("age(%d) = %s, want %s", d, got, want)
		}
	}
}

func TestMembersTableShowsAgesAndGaps(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 35, 0, 0, time.UTC)
	got := membersTable([]api.Member{
		{Name: "a", Status: api.StatusAlive, Priority: 100, JoinedAt: now.Add(-192 * time.Second), Voter: true, Candidate: true,
			Connected: true, RTTMS: 13, GossipAddr: "10.0.0.1:7946", PeerAddr: "10.0.0.1:7947", Version: "0.1.0"},
		{Name: "longer\x1b[2J", Status: api.StatusDead, Candidate: true, Priority: 100, Drained: true},
	}, now)
	want := "" +
		"NAME         STATUS  VOTER  PRIORITY  LINK  AGE    ADDRESS        VERSION\n" +
		"a            alive   yes    100       13ms  3m12s  10.0.0.1:7946  0.1.0\n" +
		"longer?[2J   dead    no     DRAINED   down  -      -              -\n"
	want = strings.ReplaceAll(strings.ReplaceAll(want, "NAME         ", "NAME        "), "a            ", "a           ")
	want = strings.ReplaceAll(want, "longer?[2J   ", "longer?[2J  ")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The names, addresses and numbers are of ordinary length.
func TestTablesFitALineOfATerminal(t *testing.T) {
	now := time.Now()
	leader := &api.Leader{Name: "db-eu-01"}
	id := "12D3KooW" + strings.Repeat("x", 44)
	for name, text := range map[string]string{
		"members": membersTable([]api.Member{{Name: "db-eu-01", Status: api.StatusSuspect, Priority: 100, Drained: true, JoinedAt: now.Add(-400 * time.Hour),
			Connected: true, RTTMS: 130, GossipAddr: "192.168.100.101:7946", PeerAddr: "192.168.100.101:7947", Version: "0.3.0"}}, now),
		"elections": electionsTable([]api.Election{{Election: "payments-eu", State: api.StateFollowing, Leader: leader, Term: 1234567, Authority: api.AuthorityLease,
			LeaseRemainingMS: 5999, ViewAgeMS: 199, Candidates: []string{"db-eu-01", "db-eu-02", "db-eu-03", "db-eu-04"}}}),
		"voters": votersTable(api.Voters{Voters: []api.Voter{{Name: "db-eu-01", ID: id}}, Next: []api.Voter{{Name: "db-eu-02", ID: id[:51] + "y"}}}),
		"history": historyTable([]api.Transition{{Time: now, Election: "default", Leader: leader, Term: 12345, GapMS: 59400, VacantMS: 999, Reason: "released by its leader"},
			{Time: now, Election: "default", Term: 12345, Reason: "lease expired"}}, "", false, now),
		"campaigns": campaignsTable([]api.Campaign{{Election: "payments-eu", Term: 12345, Priority: 1000000, PID: 4194303, UID: 65534, Since: now.Add(-59 * time.Minute),
			Meta: strings.Repeat("payments ", 20)}}, now),
	} {
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > lineWidth {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
	}
	for room, want := range map[int]string{80: "a1,b2,c3", 8: "a1,b2,c3", 7: "a1,+2", 6: "a1,+2", 0: "a1,+2"} {
		if got := some([]string{"a1", "b2", "c3"}, room); got != want {
			t.Errorf("%d columns: %s, want %s", room, got, want)
		}
	}
}

// A change or election with missing or odd fields is still printed.
func TestOddAnswersAreShown(t *testing.T) {
	for _, c := range []api.Change{{}, {IsLeader: true}, {Type: "of a newer agent, and long"}, {Snapshot: &api.Election{IsLeader: true}}} {
		if line := changeLine(c, palette{on: true}); strings.Count(line, "\n") != 1 {
			t.Errorf("%+v: %q", c, line)
		}
	}
	odd := []api.Election{{}, {Election: "x\ny", State: "\t", LeaseRemainingMS: -5, Leader: &api.Leader{}}}
	if page := statusPage(api.Agent{}, odd, palette{on: true}, time.Time{}); strings.Count(page, "\n") != 7 {
		t.Errorf("%q", page)
	}
}

// After a restart of the agent, perhaps no change was lost.
func TestOnlyChangesThatWereLostAreCalledLost(t *testing.T) {
	for missed, want := range map[uint64]string{
		1:   "x  snapshot   nobody leads, term 3; what changed before is not known\n",
		129: "x  lagged     129 changes missed; nobody leads, term 3\n",
	} {
		if line := changeLine(api.Change{Type: api.ChangeLagged, Election: "x", Term: 3, Missed: missed}, palette{}); !strings.HasSuffix(line, want) {
			t.Errorf("%d missed: %q, want %q", missed, line, want)
		}
	}
}

func TestABlankCellLeavesNoSpaceBehind(t *testing.T) {
	got := table([][]string{{"A", "B"}, {"1", "2"}, {" ", "3"}, {"4", " "}})
	if want := "A  B\n1  2\n   3\n4\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The agent, or a program in its place, may pass on another host's text.
func TestJSONOrdersATerminalNothing(t *testing.T) {
	const hostile = "x\u009b31m\u202e\u007f"
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"transitions": []api.Transition{{Reason: hostile}}, "peer": hostile})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	for _, command := range []string{"history", "status", "members"} { // status combines two answers into one object
		var out, problems bytes.Buffer
		if code := run(t.Context(), []string{"doyen", command, "-o", "json", "--socket", socket}, nil, &out, &problems); code != exitOK {
			t.Errorf("%s: %d %s", command, code, &problems)
		}
		if strings.ContainsAny(out.String(), "\u009b\u202e\u007f") || !strings.Contains(out.String(), `x\u009b31m\u202e\u007f`) {
			t.Errorf("%s writes %q", command, &out)
		}
	}
}
