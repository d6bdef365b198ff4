package agent

import "testing"

func TestTheAgentKeepsFilesForItself(t *testing.T) {
	for limit, want := range map[int]int{256: 1, 1024: 576, 1 << 20: 786_240} {
		if got := filesOf(limit); got != want || limit > spareFiles && limit-got < spareFiles {
			t.Errorf("of %d files %d are for the socket API, want %d", limit, got, want)
		}
	}
}
