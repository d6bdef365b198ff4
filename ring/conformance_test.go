package ring_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/selectiontest"
)

// The bounds are those of E. Chang and R. Roberts, CACM 22(5), 1979. All n processes start at once.
// Only messages that carry candidates count: the announcement costs n more, and the paper has no
// Acks.

// elections returns how many Election messages are sent if all agents start at once; rank(i) is the
// priority of the i-th agent in the ring.
func elections(t *testing.T, agents int, rank func(i int) int) int {
	n := selectiontest.Fleet(t, newSelector, agents, rank)
	var all []election.PeerID
	for _, a := range n.Agents() {
		all = append(all, a.Rank.Peer)
	}
	n.Elect(all...)
	return n.Sent["Election"]
}

// TestChangRoberts1979BestCase shows 2n - 1: each agent ranks above the one before it in the ring,
// so every token but the best one is dropped after one hop.
func TestChangRoberts1979BestCase(t *testing.T) {
	for n := 2; n <= 64; n *= 2 {
		if got, want := elections(t, n, func(i int) int { return 1 + i }), 2*n-1; got != want {
			t.Errorf("%d agents: %d messages, want %d", n, got, want)
		}
	}
}

// TestChangRoberts1979WorstCase shows n(n + 1)/2: each agent ranks below the one before it in the
// ring, so the i-th best token makes n - i + 1 hops.
func TestChangRoberts1979WorstCase(t *testing.T) {
	for n := 2; n <= 64; n *= 2 {
		if got, want := elections(t, n, func(i int) int { return n - i }), n*(n+1)/2; got != want {
			t.Errorf("%d agents: %d messages, want %d", n, got, want)
		}
	}
}

// TestChangRoberts1979Mean shows that over random rings the mean is n times the
// n-th harmonic number, within four standard errors of the sample.
func TestChangRoberts1979Mean(t *testing.T) {
	const seed, rings = 1979, 100
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, %d random rings a line", seed, rings)
	t.Log("agents   best   mean   n·H(n)   difference   worst   n·log2(n)   # mean, | n·log2(n)")
	for n := 4; n <= 32; n *= 2 {
		sum, squares := 0.0, 0.0
		for range rings {
			order := rng.Perm(n)
			m := float64(elections(t, n, func(i int) int { return 1 + order[i] }))
			sum, squares = sum+m, squares+m*m
		}
		mean := sum / rings
		standardError := math.Sqrt((squares/rings - mean*mean) / rings)
		want := 0.0
		for i := 1; i <= n; i++ {
			want += float64(n) / float64(i)
		}
		bound := float64(n) * math.Log2(float64(n))
		t.Logf("%6d %6d %6.1f %8.1f %11.1f%% %7d %11.1f   %s", n, 2*n-1, mean, want, 100*(mean/want-1), n*(n+1)/2, bound, plotted(mean, bound))
		if math.Abs(mean-want) > 4*standardError {
			t.Errorf("%d agents: a mean of %.2f messages, want %.2f ± %.2f", n, mean, want, 4*standardError)
		}
	}
}

// plotted draws a number of messages as a bar, and their bound as a mark. One character is four
// messages.
func plotted(messages, bound float64) string {
	bar, mark := int(math.Round(messages/4)), int(math.Round(bound/4))
	line := []rune(strings.Repeat("#", bar) + strings.Repeat(" ", max(0, mark-bar)+1))
	line[mark] = '|'
	return string(line)
}
