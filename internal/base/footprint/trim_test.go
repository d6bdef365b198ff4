package footprint

import "testing"

// The test uses code and read-only data right after the trim, so the dropped pages are read again.
func TestTheProgramRunsOnAfterATrim(t *testing.T) {
	Limit()
	for range 3 {
		if err := Trim(); err != nil {
			t.Fatal(err)
		}
	}
}
