package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"
	"pgregory.net/rapid"
)

var three = Point{3, "ring", "lan"}

// reported is a report with samples of some figures, whose names are "NAME UNIT".
func reported(on Point, samples map[string][]float64) Report {
	b := &bench{on: on, machine: []benchfmt.Config{{Key: "cpus", Value: []byte("2"), File: true}}}
	b.note("Doyen 1.2.3, seed 9")
	names := make([]string, 0, len(samples))
	for name := range samples {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		name, unit, _ := strings.Cut(name, " ")
		b.addAll(name, unit, samples[name+" "+unit])
	}
	return b.report
}

func TestTable(t *testing.T) {
	r := reported(three, map[string][]float64{
		"Takeover/fault=kill ms/takeover":              {1100, 1199.6, 1231},
		"Takeover/fault=kill ms-overlap":               {0, 0},
		"Takeover/fault=resign ms/takeover":            {4.567, 3, 800},
		"Query/by=socket/callers=16 answers/s":         {38786.4},
		"Election/fault=kill/kind=x messages/election": {2},
		"Unknown/x=y eggs":                             {1},
	})
	want := `Doyen 1.2.3, seed 9
cpus: 2

WHAT                                                     ON                   UNIT               N  MEDIAN  P99    MIN    MAX    AT MOST            
x: messages of an election, after kill -9 of the leader  3 agents, ring, lan  messages/election  1  2       2      2      2                         
the same, 16 callers                                     3 agents, ring, lan  answers/s          1  38786   38786  38786  38786                     
kill: two leaders at once in these rounds                3 agents, ring, lan  ms-overlap         2  0       0      0      0      0 max      ok      
kill -9 of the leader → new leader                       3 agents, ring, lan  ms/takeover        3  1200    1231   1100   1231   1230 p99   MISSED  
resign → new leader                                      3 agents, ring, lan  ms/takeover        3  4.57    800    3      800    15 median  ok      
Unknown/x=y                                              3 agents, ring, lan  eggs               1  1       1      1      1                         
`
	got := r.Table()
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	missed := []string{"kill -9 of the leader → new leader (3 agents, ring, lan): p99 is 1231 ms/takeover, at most 1230 is wanted"}
	if !slices.Equal(r.Missed(), missed) {
		t.Errorf("missed %q", r.Missed())
	}
}

func TestTargetsAreForAFewAgents(t *testing.T) {
	for agents, want := range map[int]int{3: 1, 5: 0} {
		if m := measureOf("Takeover/fault=kill", perTakeover, Point{agents, "bully", "lan"}); len(m.targets) != want {
			t.Errorf("of %d agents: %v", agents, m.targets)
		}
	}
}

func TestEveryFaultHasAMeasure(t *testing.T) {
	for name := range faults() {
		for _, unit := range []string{perTakeover, overlapped} {
			freezes := unit == perTakeover && strings.HasPrefix(name, "freeze") // of a freeze, only the overlaps count
			if m := measureOf("Takeover/fault="+name, unit, three); m.unit == "" && !freezes {
				t.Errorf("%s: no measure in %s", name, unit)
			}
		}
	}
	for name := range strikes() {
		if m := measureOf("Program/by=run/fault="+name, overlapped, three); m.unit == "" {
			t.Errorf("%s: no measure", name)
		}
	}
}

func TestStatistics(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // 100 down to 1
	}
	for name, test := range map[string]struct {
		samples []float64
		want    []string
	}{
		"one":                       {[]float64{7}, []string{"1", "7", "7", "7", "7"}},
		"two":                       {[]float64{9, 1}, []string{"2", "5", "9", "1", "9"}},
		"three":                     {[]float64{9, 1, 2}, []string{"3", "2", "9", "1", "9"}},
		"the 99th of a hundred":     {hundred, []string{"100", "50.5", "99", "1", "100"}},
		"101: not the greatest":     {append([]float64{1000}, hundred...), []string{"101", "51", "100", "1", "1000"}},
		"fewer than 100: the worst": {hundred[:99], []string{"99", "51", "100", "2", "100"}},
	} {
		f := reported(three, map[string][]float64{"x ms": test.samples}).Figures()[0]
		got := []string{strconv.Itoa(len(f.Samples))}
		for _, of := range []string{ofMedian, ofP99, ofMin, ofMax} {
			got = append(got, Digits(f.Value(of)))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// The definition: the least sample that at least 99 percent of the samples do not exceed.
func TestTheP99IsTheNearestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 300).Draw(t, "samples")
		got := reported(three, map[string][]float64{"x ms": samples}).Figures()[0].Value(ofP99)
		atMost := func(x float64) (n int) {
			for _, s := range samples {
				if s <= x {
					n++
				}
			}
			return n
		}
		if 100*atMost(got) < 99*len(samples) {
			t.Fatalf("only %d of %d are at most %v", atMost(got), len(samples), got)
		}
		for _, s := range samples {
			if s < got && 100*atMost(s) >= 99*len(samples) {
				t.Fatalf("%v is less than %v and would do", s, got)
			}
		}
	})
}

func TestTheWrittenReportIsInGosBenchmarkFormat(t *testing.T) {
	b := &bench{on: Point{9, "bully", "wan"}, build: buildOld, report: reported(three, map[string][]float64{"Readers answers/s": {40000}})}
	b.add("Binary", value{Value: 19.9, Unit: "MB"})
	var text strings.Builder
	if err := b.report.Write(&text); err != nil {
		t.Fatal(err)
	}
	reader := benchfmt.NewReader(strings.NewReader(text.String()), "")
	var read []string
	for reader.Scan() {
		if r, ok := reader.Result().(*benchfmt.Result); ok {
			read = append(read, fmt.Sprint(string(r.Name), " ", r.Values[0].OrigValue, r.Values[0].Value, r.Values[0].Unit, " ", r.GetConfig(buildKey)))
		}
	}
	want := []string{"Readers/agents=3/algorithm=ring/profile=lan 0 40000answers/s ", "Binary/agents=9/algorithm=bully/profile=wan 19.9 1.99e+07B before"}
	if err := reader.Err(); err != nil || !slices.Equal(read, want) || !strings.HasPrefix(text.String(), "# Doyen 1.2.3, seed 9\n") {
		t.Errorf("read %q, %v, of\n%s", read, err, &text)
	}
	if _, old := b.report.Builds(); len(old.Results) != 1 || old.Results[0].figure != "Binary" {
		t.Errorf("of the build before: %+v", old)
	}
}

func TestManySamplesAreThinnedFromTheLeastToTheGreatest(t *testing.T) {
	many := make([]float64, 12345)
	for i := range many {
		many[i] = float64(len(many) - 1 - i)
	}
	kept := thin(many)
	if len(kept) != maxSamples || kept[0] != 0 || kept[maxSamples-1] != 12344 || !slices.IsSorted(kept) {
		t.Errorf("%d samples kept, %v to %v", len(kept), kept[0], kept[len(kept)-1])
	}
	if few := []float64{3, 1}; !slices.Equal(thin(few), few) {
		t.Error("few are not kept")
	}
}

func TestCheckNamesTheFlag(t *testing.T) {
	good := Options{Points: []Point{{3, "bully", "lan"}}, Rounds: 1, Only: Parts()}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		"--rounds":    func(o *Options) { o.Rounds = 0 },
		"--only":      func(o *Options) { o.Only = []string{"speed"} },
		"--agents: 2": func(o *Options) { o.Points = []Point{{2, "bully", "lan"}} },
		"--agents: n": func(o *Options) { o.Points = nil },
		"--profile":   func(o *Options) { o.Points = []Point{{3, "bully", "x"}} },
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestPointsCombine(t *testing.T) {
	got := Points([]int{3, 5, 3}, []string{"bully", "both"}, []string{"lan", "wan"})
	want := []Point{
		{3, "bully", "lan"}, {3, "ring", "lan"}, {5, "bully", "lan"}, {5, "ring", "lan"},
		{3, "bully", "wan"}, {3, "ring", "wan"}, {5, "bully", "wan"}, {5, "ring", "wan"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestRoundsOfEachPart(t *testing.T) {
	for _, test := range []struct {
		b            bench
		tenths, want int
	}{
		{bench{o: Options{Rounds: 50}}, 10, 50},
		{bench{o: Options{Rounds: 50}}, 3, 15},
		{bench{o: Options{Rounds: 10}}, 1, 3},
		{bench{o: Options{Rounds: 1}}, 2, 1},
		{bench{o: Options{Rounds: 50}, on: Point{Agents: manyAgents}}, 10, 10},
		{bench{o: Options{Rounds: 51, Before: "x"}}, 10, 26},
	} {
		if got := test.b.rounds(test.tenths); got != test.want {
			t.Errorf("%d rounds, %d tenths: %d, want %d", test.b.o.Rounds, test.tenths, got, test.want)
		}
	}
}

func TestPartsOfARun(t *testing.T) {
	names := func(o Options) (all []string) {
		for _, p := range parts() {
			if p.wanted(o) {
				all = append(all, p.name)
			}
		}
		return all
	}
	usual := []string{"cold", "kill", "local", "handover", "overlap", "idle", "query", "watchers", "size"}
	if got := names(Options{Points: make([]Point, 1)}); !slices.Equal(got, usual) {
		t.Errorf("of one cluster: %v", got)
	}
	if got := names(Options{Points: make([]Point, 2)}); !slices.Contains(got, "messages") || slices.Contains(got, "size") {
		t.Errorf("of several: %v", got)
	}
	if got := names(Options{Only: []string{"cut"}}); !slices.Equal(got, []string{"cut"}) {
		t.Errorf("of what is named: %v", got)
	}
}

func TestTwoBuildsAreMeasuredInTurns(t *testing.T) {
	b := bench{o: Options{Binary: "new", Before: "old"}}
	var order []string
	err := b.builds(t.Context(), func() error {
		b.add("x", value{Value: 1, Unit: "ms"})
		order = append(order, b.build+" "+b.binary)
		return nil
	})
	if want := []string{"before old", "after new", "before old", "after new"}; err != nil || !slices.Equal(order, want) {
		t.Errorf("%q: %v", order, err)
	}
	if after, before := b.report.Builds(); len(before.Results) != turns || len(after.Results) != turns {
		t.Errorf("%d results of the build before, %d of the other one", len(before.Results), len(after.Results))
	}
}

func TestATargetOfNinetyPercentSparesATenth(t *testing.T) {
	f := Figure{Samples: append(make([]float64, 18), 5, 7)}
	for of, want := range map[string]float64{ofMedian: 0, ofP90: 0, ofP95: 5, ofP99: 7, ofMax: 7} {
		if got := f.Value(of); got != want {
			t.Errorf("%s is %v, want %v", of, got, want)
		}
	}
}

func TestFiguresOfLivesHaveWordsAndTargets(t *testing.T) {
	for _, p := range []Point{three, {3, "bully", "local"}} {
		for _, name := range []string{"Life/end=kill", "Life/end=panic", "Life/end=hang", "Restart"} {
			for _, unit := range []string{leadsLost, noLeader, perPause, overlapped, perLife} {
				m := measureOf(name, unit, p)
				if m.what == name || len(m.targets) == 0 && unit != perLife {
					t.Errorf("%s in %s on %s: %q, at most %v", name, unit, p, m.what, m.targets)
				}
			}
		}
	}
}
