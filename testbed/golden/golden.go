// Package golden compares what a program writes, byte for byte, with what the released versions
// write, which is in a file. The next versions have to understand that file, so lines may be
// added to it, but no line may change.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files: a change of a format")

// Check fails the test if got differs from the file in testdata.
func Check(t testing.TB, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the format changed, and the next versions have to understand this one: read both, and write the new one only where the other side knows it.\ngot:\n%s\nwant:\n%s", got, want)
	}
}
