package pages_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/pages"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

const patience = 30 * time.Second

var self = election.Holder{Peer: "peer-a", Lineage: 1}

// status returns a status in which this agent leads the elections, in that term, for one more hour.
func status(term election.Term, names ...election.Name) *elector.Status {
	s := &elector.Status{Self: self, Quorum: elector.QuorumStatus{Enabled: true}}
	for _, name := range names {
		s.Contests = append(s.Contests, &elector.ContestStatus{Election: name, State: elector.Leading, Leader: self, Term: term,
			ValidUntil: boottime.Now().Add(time.Hour)})
	}
	return s
}

// keep opens a keeper until the test's end.
func keep(t testing.TB, dir string) *pages.Keeper {
	t.Helper()
	k := pages.Open(dir, self.Lineage, nil)
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// publish publishes until so returns true. It waits each time until Ready asks for another call.
func publish(t testing.TB, k *pages.Keeper, s *elector.Status, what string, so func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for k.Publish(0, s); !so(); k.Publish(0, s) {
		select {
		case <-k.Ready():
		case <-limit.C:
			t.Fatalf("never %s; problem %q", what, k.Problem())
		}
	}
}

func there(path string) bool { _, err := os.Lstat(path); return err == nil }

func open(t testing.TB, path string) *leasepage.Reader {
	t.Helper()
	r, err := leasepage.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// valid reports whether there is a page that shows a lease. While a page is replaced, there may be none for a moment.
func valid(path string) bool {
	r, err := leasepage.Open(path)
	if err != nil {
		return false
	}
	defer r.Close()
	return r.Valid()
}

func TestEachElectionHasAPageThatSaysWhatTheStatusSays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "leases")
	k := keep(t, dir)
	path := filepath.Join(dir, "payments")
	s := status(7, "default", "payments")
	publish(t, k, s, "made", func() bool { return there(path) && there(filepath.Join(dir, "default")) })
	publish(t, k, s, "written", open(t, path).Valid)
	r := open(t, path)
	if l, ok := r.Check(); !ok || l.Term != 7 || l.Deadline != int64(s.Contests[1].ValidUntil) {
		t.Errorf("%+v, %t", l, ok)
	}
	for what, change := range map[string]func(*elector.Status){
		"another leads": func(s *elector.Status) {
			s.Contests[1].Leader, s.Contests[1].State = election.Holder{Peer: "b"}, elector.Following
		},
		"it stands down":    func(s *elector.Status) { s.Contests[1].State = elector.Electing },
		"a former life did": func(s *elector.Status) { s.Contests[1].Leader.Lineage++ },
		"without a quorum":  func(s *elector.Status) { s.Quorum.Enabled = false },
		"the lease is over": func(s *elector.Status) { s.Contests[1].ValidUntil = boottime.Now() },
		"the election ends": func(s *elector.Status) { s.Contests = s.Contests[:1] },
	} {
		publish(t, k, status(8, "default", "payments"), "valid again after "+what, func() bool { return valid(path) })
		held := open(t, path)
		other := status(8, "default", "payments")
		change(other)
		k.Publish(0, other)
		if held.Valid() {
			t.Errorf("%s, and the page tells of a lease", what)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o750 || k.Problem() != "" {
		t.Errorf("directory %v: %v; problem %q", info.Mode(), err, k.Problem())
	}
}

func TestPagesOfElectionsThatAreGoneAreRemoved(t *testing.T) {
	dir := t.TempDir()
	k := keep(t, dir)
	both, one := status(1, "a", "b"), status(1, "b")
	for range 20 { // b stays; a goes, and comes back again and again
		k.Publish(0, both)
		k.Publish(0, one)
	}
	publish(t, k, both, "made", func() bool {
		for _, name := range []string{"a", "b"} {
			if !valid(filepath.Join(dir, name)) {
				return false
			}
		}
		return true
	})
	k.Publish(0, one)
	if there(filepath.Join(dir, "a")) {
		t.Error("the page of an election that is gone stays")
	}
	if !open(t, filepath.Join(dir, "b")).Valid() {
		t.Error("the other's page is not valid")
	}
}

func TestAFormerLifesPagesAreWipedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	former, err := leasepage.Create(dir, "payments", 9)
	if err != nil {
		t.Fatal(err)
	}
	if err := former.Set(1, int64(boottime.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	r := open(t, filepath.Join(dir, "payments"))
	elsewhere := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(elsewhere, []byte("mine"), 0o600), os.Symlink(elsewhere, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	k := keep(t, dir)
	if r.Valid() || k.Problem() != "" {
		t.Errorf("valid %t, problem %q", r.Valid(), k.Problem())
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != ".lock" {
		t.Errorf("left: %v, want the lock alone", left)
	}
	if text, _ := os.ReadFile(elsewhere); string(text) != "mine" {
		t.Errorf("what a link led to was written: %q", text)
	}
}

func TestTwoAgentsKeepNoPagesInOneDirectory(t *testing.T) {
	dir := t.TempDir()
	first, second := keep(t, dir), pages.Open(dir, 2, nil)
	second.Publish(0, status(1, "payments"))
	if p := second.Problem(); !strings.Contains(p, "another agent keeps its lease pages") || first.Problem() != "" {
		t.Errorf("problems %q and %q", first.Problem(), p)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// A member of the agent's group once took the lock on the directory, which the group may read. The next agent kept
// no pages, and did not wipe the old ones.
func TestWhoMayReadTheDirectoryCannotLockItAgainstTheNextAgent(t *testing.T) {
	dir := t.TempDir()
	first := pages.Open(dir, 1, nil)
	reader, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := unix.Flock(int(reader.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal("the directory itself is locked:", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := keep(t, dir)
	if second.Problem() != "" {
		t.Errorf("the next agent keeps no pages: %s", second.Problem())
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, and could be locked by others", f.Name(), info.Mode())
		}
	}
}

func TestWhatIsInTheWayIsSaidAndHarmsNothingElse(t *testing.T) {
	base := t.TempDir()
	file, link := filepath.Join(base, "file"), filepath.Join(base, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(base, link)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, link, filepath.Join(base, "no", "such")} {
		k := keep(t, dir)
		k.Publish(0, status(1, "payments"))
		if !strings.Contains(k.Problem(), "lease pages are off") {
			t.Errorf("%s: problem %q", dir, k.Problem())
		}
	}
	var none pages.Keeper
	none.Publish(0, status(1, "payments"))
	if none.Problem() != "" || none.Ready() != nil || none.Close() != nil || (*pages.Keeper)(nil).Close() != nil {
		t.Error("no keeper keeps something")
	}
}

func TestAPageThatCantBeMadeIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	k := keep(t, dir)
	block := filepath.Join(dir, "payments")
	if err := os.MkdirAll(filepath.Join(block, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := status(1, "default", "payments")
	publish(t, k, s, "told", func() bool { return strings.Contains(k.Problem(), "payments") })
	publish(t, k, s, "made", func() bool { return there(filepath.Join(dir, "default")) })
	if err := os.RemoveAll(block); err != nil {
		t.Fatal(err)
	}
	later := election.Instant(time.Minute)
	for k.Publish(later, s); k.Problem() != ""; k.Publish(later, s) {
		select {
		case <-k.Ready():
		case <-time.After(patience):
			t.Fatalf("still %q", k.Problem())
		}
	}
	r := open(t, block)
	if !r.Valid() {
		t.Error("not valid")
	}
	if err := os.Truncate(block, 0); err != nil { // from here on, writes to the page fail
		t.Fatal(err)
	}
	k.Publish(later, status(2, "default", "payments"))
	if r.Valid() || !strings.Contains(k.Problem(), "disk is full") {
		t.Errorf("valid %t, problem %q", r.Valid(), k.Problem())
	}
}

func TestCloseEndsAndRemovesEveryPage(t *testing.T) {
	dir := t.TempDir()
	k := pages.Open(dir, 1, nil)
	s := status(1, "a", "b")
	publish(t, k, s, "made", func() bool { return there(filepath.Join(dir, "a")) && there(filepath.Join(dir, "b")) })
	k.Publish(0, status(1, "a", "b", "c"))
	r := open(t, filepath.Join(dir, "a"))
	if err := k.Close(); err != nil || r.Valid() {
		t.Errorf("valid %t: %v", r.Valid(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != ".lock" {
		t.Errorf("left: %v, want the lock alone", left)
	}
	if _, err := leasepage.Open(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// BenchmarkPublish measures a renewal of a thousand elections.
func BenchmarkPublish(b *testing.B) {
	dir := b.TempDir()
	k := keep(b, dir)
	var names []election.Name
	for i := range 1000 {
		names = append(names, election.Name(fmt.Sprintf("election-%04d", i)))
	}
	s := status(1, names...)
	publish(b, k, s, "made", func() bool { found, _ := os.ReadDir(dir); return len(found) == 1000 })
	k.Publish(0, s)
	b.ReportAllocs()
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			k.Publish(0, s)
		}
	})
	b.Run("renewed", func(b *testing.B) {
		for b.Loop() {
			for i := range s.Contests {
				s.Contests[i].ValidUntil++
			}
			k.Publish(0, s)
		}
	})
}

// A later life keeps the pages of the elections that it goes on leading. Programs that have mapped these
// pages see no end of the lease.
func TestPagesOfWhatIsLedOnAreAdopted(t *testing.T) {
	dir := t.TempDir()
	until := int64(boottime.Now().Add(time.Hour))
	readers := map[string]*leasepage.Reader{}
	for name, lineage := range map[string]uint64{"led": 1, "over": 1, "other": 9} {
		former, err := leasepage.Create(dir, name, lineage)
		if err != nil {
			t.Fatal(err)
		}
		if err := former.Set(7, until); err != nil {
			t.Fatal(err)
		}
		readers[name] = open(t, filepath.Join(dir, name))
	}
	k := pages.Open(dir, self.Lineage, map[election.Name]bool{"led": true, "other": true, "never": true})
	for name, want := range map[string]bool{"led": true, "over": false, "other": false} {
		if got := readers[name].Valid(); got != want {
			t.Errorf("%s: valid %t", name, got)
		}
	}
	s := status(7, "led")
	k.Publish(0, s)
	if l, ok := readers["led"].Check(); !ok || l.Term != 7 || l.Deadline != int64(s.Contests[0].ValidUntil) {
		t.Errorf("after it was renewed: %+v, %t", l, ok)
	}
	s.Contests[0] = &elector.ContestStatus{Election: "led", State: elector.Electing}
	if k.Publish(0, s); readers["led"].Valid() {
		t.Error("after its end it is valid")
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}
