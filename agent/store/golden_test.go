package store

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/testbed/golden"
)

// The next versions must go on with the data directory of this version: its identity, its drain and its state.
// Package codec keeps the format of the state.
func TestTheFilesOfTheDataDirectoryAreWhatTheyWere(t *testing.T) {
	dir := directory(t.TempDir())
	key := ed25519.NewKeyFromSeed([]byte("0123456789abcdef0123456789abcdef"))
	if err := writeKey(dir, key); err != nil {
		t.Fatal(err)
	}
	if read, err := readKey(dir); err != nil || !read.Equal(key) {
		t.Errorf("the key is read as %x, %v", read, err)
	}
	s := &Store{dir: dir}
	if err := s.SetDrained(true); err != nil || s.DrainedSince().IsZero() {
		t.Fatalf("drained since %v, %v", s.DrainedSince(), err)
	}
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(string(dir), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("-- " + e.Name() + " --\n" + string(data))
	}
	golden.Check(t, "files.golden", text.String()+"-- and: "+stateFile+", "+lockFile+" --\n")
}
