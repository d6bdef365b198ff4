package live_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/live"
)

var update = flag.Bool("update", false, "write the golden files anew")

// afterTakeover has four agents: the first leader was killed, another agent follows the new leader,
// and the fourth is frozen.
func afterTakeover() live.Model {
	return live.Model{
		Algorithm: "bully", Profile: "lan", Quorum: true, Heartbeat: 200 * time.Millisecond, Lease: 1200 * time.Millisecond,
		Elapsed: 65 * time.Second, Leader: "beta", Term: 2, Remaining: 900 * time.Millisecond,
		Summary: []string{"takeovers: 3: 1.151 s 4.23 ms 990 ms", "two leaders at once: 0 ms"}, Selected: 1,
		Agents: []live.Row{
			{Name: "alpha", Status: hosts.Down, Addr: "127.3.2.1", Socket: "/tmp/t/alpha.sock"},
			{Name: "beta", Status: hosts.Running, State: api.StateLeading, Follows: "beta", Term: 2, Addr: "127.3.2.2", Socket: "/tmp/t/beta.sock"},
			{Name: "gamma", Status: hosts.Running, State: api.StateFollowing, Follows: "beta", Term: 2, Addr: "127.3.2.3", Socket: "/tmp/t/gamma.sock"},
			{Name: "delta", Status: hosts.Frozen, State: api.StateNoQuorum, Term: 1, Addr: "127.3.2.4", Socket: "/tmp/t/delta.sock"},
			{Name: "epsilon", Status: hosts.Running, Addr: "127.3.2.5", Socket: "/tmp/t/epsilon.sock"},
		},
		Lines: []live.Line{
			{At: 8 * time.Millisecond, Text: "5 agents started"},
			{At: 2324 * time.Millisecond, Mood: live.Bad, Text: "lose the host alpha, the leader"},
			{At: 3470 * time.Millisecond, Mood: live.Good, Text: "beta leads, term 2, 1.151 s after the loss of alpha"},
		},
		Ask: "doyen",
	}
}

func TestRender(t *testing.T) {
	electing := afterTakeover()
	electing.Leader, electing.Selected = "", 0
	over := afterTakeover()
	over.Remaining = -time.Millisecond
	advisory := afterTakeover()
	advisory.Quorum = false
	for name, test := range map[string]struct {
		model         live.Model
		width, height int
		colour        bool
	}{
		"takeover": {afterTakeover(), 110, 24, false},
		"colour":   {afterTakeover(), 110, 24, true},
		"electing": {electing, 110, 24, false},
		"over":     {over, 110, 24, false},
		"advisory": {advisory, 110, 24, false},
		"narrow":   {afterTakeover(), 40, 18, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(live.Render(test.model, test.width, test.height, test.colour), "\n") + "\n"
			path := "testdata/" + name + ".golden"
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestRenderKeepsToTheSize(t *testing.T) {
	for width := range 130 {
		for height := range 40 {
			lines := live.Render(afterTakeover(), width, height, false)
			if len(lines) > height {
				t.Fatalf("%d lines on a terminal of %d", len(lines), height)
			}
			for _, l := range lines {
				if n := utf8.RuneCountInString(l); n > width {
					t.Fatalf("a line of %d columns on a terminal of %d: %q", n, width, l)
				}
			}
		}
	}
}

func TestRenderOfNothing(t *testing.T) {
	if lines := live.Render(live.Model{}, 80, 24, true); len(lines) == 0 {
		t.Error("nothing was drawn")
	}
}
