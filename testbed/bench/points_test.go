package bench

import (
	"slices"
	"strings"
	"testing"
)

func TestParsePointsCombines(t *testing.T) {
	got, err := ParsePoints("3, 5", "both", "lan,wan")
	want := []Point{
		{3, "bully", "lan"}, {3, "ring", "lan"}, {5, "bully", "lan"}, {5, "ring", "lan"},
		{3, "bully", "wan"}, {3, "ring", "wan"}, {5, "bully", "wan"}, {5, "ring", "wan"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ParsePoints("3,3", "bully,both", "lan"); err != nil || len(got) != 2 {
		t.Errorf("each once: %v, %v", got, err)
	}
	many := strings.Repeat("3,", 101)
	for _, bad := range []struct{ agents, algorithms, profiles, want string }{
		{"x", "bully", "lan", `--agents: "x"`}, {"", "bully", "lan", "--agents: nothing"}, {"3", " ", "lan", "--algorithm: nothing"},
		{"3", "ring", ",", "--profile: nothing"}, {many, "ring", "lan", "at most 100"},
	} {
		if _, err := ParsePoints(bad.agents, bad.algorithms, bad.profiles); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestManyAgentsGetFewerRounds(t *testing.T) {
	o := Options{Agents: 3, Algorithm: "bully", Profile: "lan", Rounds: 50, More: []Point{{25, "bully", "lan"}}}
	var rounds []int
	for _, p := range o.points() {
		rounds = append(rounds, o.on(p).Rounds)
	}
	if !slices.Equal(rounds, []int{50, 10}) {
		t.Errorf("rounds %v", rounds)
	}
}

func TestPartsOfARun(t *testing.T) {
	names := func(o Options, several bool) (all []string) {
		for _, p := range parts() {
			if p.wanted(o, several) {
				all = append(all, p.name)
			}
		}
		return all
	}
	usual := []string{"cold", "kill", "local", "handover", "overlap", "idle", "query", "watchers", "size"}
	if got := names(Options{}, false); !slices.Equal(got, usual) {
		t.Errorf("of one cluster: %v", got)
	}
	if got := names(Options{}, true); !slices.Contains(got, "messages") || slices.Contains(got, "size") {
		t.Errorf("of several: %v", got)
	}
	if got := names(Options{Only: []string{"cut"}}, true); !slices.Equal(got, []string{"cut"}) {
		t.Errorf("of what is named: %v", got)
	}
}
