package store_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/election"
)

// TestMain lets a test see what the system is asked for: it runs this program
// again, under strace.
func TestMain(m *testing.M) {
	if dir := os.Getenv("STORE_TEST_DIR"); dir != "" {
		os.Exit(openAndWrite(dir))
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // they wait for time, not for processors
		panic(err)
	}
	os.Exit(m.Run())
}

// openAndWrite opens a store, reads, and writes what it read once more.
func openAndWrite(dir string) int {
	s, state, err := store.Open(store.Config{Dir: dir, Name: "a", PeerID: peerID})
	if err != nil {
		panic(err)
	}
	state.Grants = map[election.Name]election.Grant{"default": {Term: 8}}
	if err := s.Write(election.Persist{State: &state}); err != nil {
		panic(err)
	}
	return 0
}

var syscallLine = regexp.MustCompile(`(openat|read|write|fsync|fdatasync|rename(?:at2?)?|flock|mkdirat)\((.*)$`)

// traced returns what the program asks of the system about a directory, in
// order: "fsync state", "rename state.new state", "fsync ." and so on.
func traced(t *testing.T, dir string) []string {
	t.Helper()
	return tracedBelow(t, dir, dir)
}

// tracedBelow does the same for a data directory anywhere below.
func tracedBelow(t *testing.T, dir, data string) []string {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("there is no strace, which shows the order of the syscalls: install it")
	}
	log := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-y", "-qq", "-o", log, "-e", "trace=read,write,fsync,fdatasync,rename,renameat,renameat2,flock,mkdir,mkdirat", os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_TEST_DIR="+data)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("strace: %v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return calls(string(text), filepath.Dir(dir))
}

// calls reads strace's lines, and keeps what is about files below root.
func calls(log, root string) []string {
	path := regexp.MustCompile(`[<"](` + regexp.QuoteMeta(root) + `[^>"]*)[>"]`)
	var calls []string
	for line := range strings.Lines(log) {
		m := syscallLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		words := []string{strings.TrimSuffix(strings.TrimSuffix(m[1], "at2"), "at")}
		for _, p := range path.FindAllStringSubmatch(m[2], -1) {
			name, _ := filepath.Rel(root, p[1])
			words = append(words, name)
		}
		if len(words) > 1 {
			calls = append(calls, strings.Join(words, " "))
		}
	}
	return slices.Compact(calls)
}

// inOrder checks that all these calls were made, each after the one before.
func inOrder(t *testing.T, calls []string, want ...string) {
	t.Helper()
	at := 0
	for _, w := range want {
		i := slices.Index(calls[at:], w)
		if i < 0 {
			t.Fatalf("no %q after the %d calls before it; the calls were\n%s", w, at, strings.Join(calls, "\n"))
		}
		at += i + 1
	}
}

// What a start reads may be in the page cache alone: a power cut would take it
// back after this life has answered by it.
func TestAStartSyncsBeforeItReads(t *testing.T) {
	dir, _ := made(t)
	calls := traced(t, dir)
	inOrder(t, calls, "flock data/lock", "fsync data/identity.key", "fsync data/state", "fsync data", "read data/state")
	for _, c := range calls[:slices.Index(calls, "fsync data")] {
		if c == "read data/state" || c == "read data/identity.key" {
			t.Errorf("%q before everything is synced; the calls were\n%s", c, strings.Join(calls, "\n"))
		}
	}
}

// A state that has its name before its bytes are on disk may be empty, torn or
// gone after a power cut, and the one before with it.
func TestAStateGetsItsNameWhenItsBytesAreSynced(t *testing.T) {
	dir, _ := made(t)
	calls := traced(t, dir)
	inOrder(t, calls, "read data/state", "write data/state.new", "fsync data/state.new", "rename data/state.new data/state", "fsync data")
	for i, c := range calls {
		if c == "rename data/state.new data/state" && calls[i-1] != "fsync data/state.new" {
			t.Errorf("%q comes right before the rename", calls[i-1])
		}
	}
}

// A directory that was made in others must be there after a power cut, and so
// must these.
func TestEveryDirectoryThatAStartMakesIsSynced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "top")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	calls := tracedBelow(t, dir, filepath.Join(dir, "a", "b", "data"))
	inOrder(t, calls, "mkdir top/a/b/data", "flock top/a/b/data/lock", "fsync top/a/b", "fsync top/a", "fsync top",
		"rename top/a/b/data/state.new top/a/b/data/state", "fsync top/a/b/data")
}
