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

// TestMain runs openAndWrite if a test has started this binary again, under strace.
func TestMain(m *testing.M) {
	if dir := os.Getenv("STORE_TEST_DIR"); dir != "" {
		os.Exit(openAndWrite(dir))
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests wait for time, not for processors
		panic(err)
	}
	os.Exit(m.Run())
}

// openAndWrite opens a store, reads the state, and writes the same state again.
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

// traced returns, in order, the system calls of openAndWrite on a data directory: "fsync state", "rename state.new state",
// "fsync ." and so on.
func traced(t *testing.T, dir string) []string {
	t.Helper()
	return tracedBelow(t, dir, dir)
}

// tracedBelow is traced for a data directory somewhere below dir.
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

// calls returns the calls in strace's output that are about files below root.
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

// inOrder checks that these calls were made in this order.
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

// The state that a start reads may be only in the page cache. If this life answered from that state, a power cut
// could still undo it.
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

// If a state gets its name before its bytes are on disk, a power cut may destroy it. The former state is lost too.
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

// After a power cut, the data directory must still be there, and so must the directories above it.
func TestEveryDirectoryThatAStartMakesIsSynced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "top")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	calls := tracedBelow(t, dir, filepath.Join(dir, "a", "b", "data"))
	inOrder(t, calls, "mkdir top/a/b/data", "flock top/a/b/data/lock", "fsync top/a/b", "fsync top/a", "fsync top",
		"rename top/a/b/data/state.new top/a/b/data/state", "fsync top/a/b/data")
}
