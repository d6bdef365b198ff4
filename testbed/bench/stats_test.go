package bench

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSummarise(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // 100 down to 1
	}
	for name, test := range map[string]struct {
		samples []float64
		want    Summary
	}{
		"none":                      {nil, Summary{}},
		"one":                       {[]float64{7}, Summary{N: 1, Median: 7, P99: 7, Min: 7, Max: 7}},
		"two":                       {[]float64{9, 1}, Summary{N: 2, Median: 5, P99: 9, Min: 1, Max: 9}},
		"three":                     {[]float64{9, 1, 2}, Summary{N: 3, Median: 2, P99: 9, Min: 1, Max: 9}},
		"the 99th of a hundred":     {hundred, Summary{N: 100, Median: 50.5, P99: 99, Min: 1, Max: 100}},
		"101: not the greatest":     {append([]float64{1000}, hundred...), Summary{N: 101, Median: 51, P99: 100, Min: 1, Max: 1000}},
		"fewer than 100: the worst": {hundred[:99], Summary{N: 99, Median: 51, P99: 100, Min: 2, Max: 100}},
	} {
		if got := Summarise(test.samples); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// The definition, word by word: the least sample that at least p percent do not
// exceed.
func TestPercentileIsTheNearestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 300).Draw(t, "samples")
		got := Summarise(samples).P99
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
