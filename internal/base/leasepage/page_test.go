package leasepage_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

const patience = 30 * time.Second

// page returns a page of the election "payments" and a reader of it.
func page(t testing.TB) (*leasepage.Writer, *leasepage.Reader) {
	t.Helper()
	w := create(t, t.TempDir(), "payments")
	return w, open(t, w.Path())
}

func create(t testing.TB, dir, election string) *leasepage.Writer {
	t.Helper()
	w, err := leasepage.Create(dir, election, 42)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func open(t testing.TB, path string) *leasepage.Reader {
	t.Helper()
	r, err := leasepage.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// set makes the page show a lease that lasts as long as left.
func set(t testing.TB, w *leasepage.Writer, term uint64, left time.Duration) int64 {
	t.Helper()
	until := alarm.Now() + int64(left)
	if err := w.Set(term, until); err != nil {
		t.Fatal(err)
	}
	return until
}

// eventually repeats the check until it succeeds.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); {
		if time.Now().After(end) {
			t.Fatalf("never %s", what)
		}
	}
}

func TestALeaseIsToldWithItsTermAndDeadline(t *testing.T) {
	w, r := page(t)
	if r.Valid() {
		t.Error("a new page holds a lease")
	}
	for term := uint64(1); term < 4; term++ {
		until := set(t, w, term, time.Minute)
		l, ok := r.Check()
		if !ok || l.Term != term || l.Deadline != until || l.Remaining <= 50*time.Second || l.Remaining > time.Minute {
			t.Errorf("term %d: %+v, %t", term, l, ok)
		}
	}
	if err := w.Set(3, 0); err != nil || r.Valid() {
		t.Errorf("valid after the end: %v", err)
	}
}

// The deadline passes although the writer does nothing.
func TestALeaseEndsByItself(t *testing.T) {
	w, r := page(t)
	until := set(t, w, 1, 20*time.Millisecond)
	eventually(t, "over", func() bool {
		before := alarm.Now()
		l, ok := r.Check()
		if ok && (before >= until || l.Remaining <= 0) {
			t.Fatalf("valid %d ns after its end", before-until)
		}
		return !ok
	})
	if now := alarm.Now(); now < until-int64(time.Millisecond) {
		t.Errorf("over %d ns early", until-now)
	}
}

func TestReadersFollowThePageOfTheNextAgent(t *testing.T) {
	dir := t.TempDir()
	former := create(t, dir, "payments")
	r := open(t, former.Path())
	set(t, former, 1, time.Hour)
	next := create(t, dir, "payments") // the former agent was killed
	if r.Valid() {
		t.Error("the former agent's lease is valid on the next one's page")
	}
	set(t, next, 2, time.Hour)
	eventually(t, "followed", r.Valid)
	if l, _ := r.Check(); l.Term != 2 {
		t.Errorf("term %d, want 2", l.Term)
	}
	if err := next.Close(); err != nil || r.Valid() {
		t.Errorf("valid when the agent has stopped: %v", err)
	}
	if _, err := leasepage.Open(next.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the page is still there: %v", err)
	}
	set(t, create(t, dir, "payments"), 3, time.Hour)
	eventually(t, "followed", r.Valid)
	_ = r.Close()
	if _ = r.Close(); r.Valid() {
		t.Error("valid after Close")
	}
}

func TestAPageIsForTheAgentsGroupToRead(t *testing.T) {
	w := create(t, t.TempDir(), "payments")
	info, err := os.Stat(w.Path())
	if err != nil || info.Mode() != 0o640 || info.Size() != leasepage.Size {
		t.Errorf("%v, %d bytes: %v", info.Mode(), info.Size(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(w.Path()), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAPageIsMadeInThePlaceOfWhateverIsThere(t *testing.T) {
	for what, make := range map[string]func(path string) error{
		"nothing":    func(string) error { return nil },
		"a file":     func(path string) error { return os.WriteFile(path, []byte("text"), 0o600) },
		"a link":     func(path string) error { return os.Symlink("elsewhere", path) },
		"half a one": func(path string) error { return os.WriteFile(filepath.Dir(path)+"/.new-payments", nil, 0) },
	} {
		dir := t.TempDir()
		elsewhere := filepath.Join(dir, "elsewhere")
		if err := errors.Join(os.WriteFile(elsewhere, []byte("mine"), 0o600), make(filepath.Join(dir, "payments"))); err != nil {
			t.Fatal(err)
		}
		w := create(t, dir, "payments")
		set(t, w, 1, time.Hour)
		if !open(t, w.Path()).Valid() {
			t.Errorf("%s: the page is not valid", what)
		}
		if text, _ := os.ReadFile(elsewhere); string(text) != "mine" {
			t.Errorf("%s: the file a link led to was written: %q", what, text)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "payments"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "payments", "in"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := leasepage.Create(dir, "payments", 1); err == nil {
		t.Error("a directory was replaced")
	}
	for _, name := range []string{"", "a/b", "..", ".new-a", string(make([]byte, 64))} {
		if _, err := leasepage.Create(dir, name, 1); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

func TestChecksAndRenewalsAllocateNothing(t *testing.T) {
	w, r := page(t)
	until := set(t, w, 1, time.Hour)
	if n := testing.AllocsPerRun(1000, func() { r.Valid() }); n != 0 {
		t.Errorf("a check allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() { until++; _ = w.Set(1, until) }); n != 0 {
		t.Errorf("a renewal allocates %v times", n)
	}
}
