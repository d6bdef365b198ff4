package election

import (
	"strings"
	"testing"
)

func TestValidNamesAreThoseOfTheContract(t *testing.T) {
	for _, name := range []string{"a", "0", "default", "primary-db", "job.2026_11-20", strings.Repeat("x", 63)} {
		if !ValidName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", "-a", ".a", "_roster", "A", "a b", "a/b", "é", "a\n", "a\x00", strings.Repeat("x", 64)} {
		if ValidName(name) {
			t.Errorf("%q is taken", name)
		}
	}
}
