package quorum

import "testing"

// TestTwoMajoritiesAlwaysShareAVoter shows what every promise rests on, and that a majority has no
// more voters than necessary.
func TestTwoMajoritiesAlwaysShareAVoter(t *testing.T) {
	for n := 1; n <= 9; n++ {
		switch m := Majority(n); {
		case 2*m <= n:
			t.Errorf("of %d voters %d decide: two such groups need not share one", n, m)
		case 2*(m-1) > n:
			t.Errorf("of %d voters %d decide, one less would do", n, m)
		}
	}
}
