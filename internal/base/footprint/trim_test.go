package footprint

import "testing"

// TestTheProgramRunsOnAfterATrim shows that the pages given back come again:
// code and read-only data are used right after.
func TestTheProgramRunsOnAfterATrim(t *testing.T) {
	Limit()
	for range 3 {
		if err := Trim(); err != nil {
			t.Fatal(err)
		}
	}
}
