package bench

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func sample() Report {
	return Report{
		Version: "1.2.3", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Machine: Machine{OS: "linux", Arch: "amd64", Kernel: "6.1", CPUs: 2, MemoryMiB: 4096, Go: "go1.26", Load1: 0.25},
		Options: Settings{Agents: 3, Algorithm: "ring", Profile: "lan", LeaseMS: 1200, Rounds: 50, Seed: 9},
		Results: []Result{
			newResult("kill", "kill -9", "ms", &Target{ofP99, 1230}, []float64{1100, 1199.6, 1231}),
			newResult("resign", "resign", "ms", &Target{ofMedian, 15}, []float64{4.567, 3, 800}),
			newResult("overlap", "two leaders", "ms", &Target{ofMax, 0}, []float64{0, 0}),
			newResult("cold", "cold start", "ms", &Target{ofMedian, 500}, nil),
			newResult("rate", "rate", "1/s", nil, []float64{38786.4}),
		},
		Notes: []string{"idle cost: it is measured on Linux only"},
	}
}

func TestTable(t *testing.T) {
	want := `Doyen 1.2.3, 2026-01-02 03:04 UTC: 3 agents, ring, profile lan (lease 1200 ms), 50 rounds, seed 9
linux/amd64 6.1, 2 × unknown processor, 4096 MiB, go1.26, load 0.25 before the run

WHAT         UNIT  N  MEDIAN  P99    MIN    MAX    AT MOST     
kill -9      ms    3  1200    1231   1100   1231   1230 p99    MISSED
resign       ms    3  4.57    800    3      800    15 median   ok
two leaders  ms    2  0       0      0      0      0 max       ok
cold start   ms    0  0       0      0      0      500 median  MISSED
rate         1/s   1  38786   38786  38786  38786  -           

Not measured: idle cost: it is measured on Linux only.
`
	if got := sample().Table(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestMissedNamesWhatWasMissed(t *testing.T) {
	want := []string{
		"kill -9: p99 is 1231 ms, at most 1230 ms is wanted",
		"cold start: median is 0 ms of 0 samples, at most 500 ms is wanted",
	}
	if got := sample().Missed(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestManySamplesAreThinnedButAllCount(t *testing.T) {
	many := make([]float64, 12345)
	for i := range many {
		many[i] = float64(i)
	}
	r := newResult("q", "q", "µs", nil, many)
	if len(r.Samples) != maxSamples || r.Summary.N != 12345 || r.Summary.Max != 12344 || !slices.IsSorted(r.Samples) {
		t.Errorf("%d samples kept, summary %+v", len(r.Samples), r.Summary)
	}
}

func TestCheckNamesTheFlag(t *testing.T) {
	good := Options{Agents: 3, Algorithm: "bully", Profile: "lan", Rounds: 1, Only: Parts()}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		"--rounds":  func(o *Options) { o.Rounds = 0 },
		"--only":    func(o *Options) { o.Only = []string{"speed"} },
		"--agents":  func(o *Options) { o.Agents = 2 },
		"--profile": func(o *Options) { o.Profile = "x" },
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
