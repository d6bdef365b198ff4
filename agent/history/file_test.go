package history_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/history"
	"github.com/doyen-election/doyen/api"
)

// keep returns a log that is kept in the file, and the error of Keep.
func keep(t *testing.T, path string) (*history.Log, error) {
	t.Helper()
	l := history.New(0)
	return l, l.Keep(path, func(err error) { t.Errorf("a problem with writing: %v", err) })
}

func add(l *history.Log, terms ...uint64) {
	for _, term := range terms {
		c := leads("default", "a", term, int64(term))
		c.Time = time.Unix(int64(term), 0).UTC()
		l.Add(c)
	}
}

func terms(l *history.Log) (all []uint64) {
	for _, c := range l.List("", history.MaxKept) {
		all = append(all, c.Term)
	}
	return all
}

func flush(t *testing.T, l *history.Log) {
	t.Helper()
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
}

func TestTheHistoryOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	first, err := keep(t, path)
	if err != nil {
		t.Fatalf("without a file: %v", err)
	}
	add(first, 1, 2)
	flush(t, first)
	add(first, 3)
	flush(t, first)
	second, err := keep(t, path)
	if err != nil || !slices.Equal(terms(second), []uint64{1, 2, 3}) {
		t.Fatalf("the next run has %v: %v", terms(second), err)
	}
	if was, is := first.List("", 9), second.List("", 9); is[2].Leader.Name != "a" || !is[2].Time.Equal(was[2].Time) || is[2].BoottimeNS != was[2].BoottimeNS {
		t.Errorf("%+v became %+v", was[2], is[2])
	}
	add(second, 4)
	flush(t, second)
	if third, err := keep(t, path); err != nil || !slices.Equal(terms(third), []uint64{1, 2, 3, 4}) {
		t.Errorf("the run after that has %v: %v", terms(third), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// The file is bounded however long agents run, and so are the changes that a start reads.
func TestAFullHistoryFileKeepsTheNewest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	l, err := keep(t, path)
	if err != nil {
		t.Fatal(err)
	}
	const all = 4*history.MaxKept + 7
	for n := uint64(1); n <= all; n++ {
		add(l, n)
		if n%777 == 0 || n == all {
			flush(t, l)
		}
	}
	text, err := os.ReadFile(path)
	if lines := bytes.Count(text, []byte("\n")); err != nil || lines > 2*history.MaxKept {
		t.Errorf("%d lines: %v", lines, err)
	}
	next, err := keep(t, path)
	if got := terms(next); err != nil || len(got) != history.MaxKept || got[len(got)-1] != all || got[0] != all-history.MaxKept+1 {
		t.Errorf("the next run has %d changes, from %d to %d: %v", len(got), got[0], got[len(got)-1], err)
	}
}

// A write that a crash cuts off costs only the change in it.
func TestAHistoryThatWasCutOffGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	l, _ := keep(t, path)
	add(l, 1, 2, 3)
	flush(t, l)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	start := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	for end := start; end < len(text); end++ {
		if err := os.WriteFile(path, text[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := keep(t, path)
		if err != nil || !slices.Equal(terms(l), []uint64{1, 2}) {
			t.Fatalf("cut off at %d: %v, %v", end, terms(l), err)
		}
		add(l, 4)
		flush(t, l)
		if l, err = keep(t, path); err != nil || !slices.Equal(terms(l), []uint64{1, 2, 4}) {
			t.Fatalf("after that: %v, %v", terms(l), err)
		}
	}
}

// A damaged file is set aside, and a new history starts.
func TestADamagedHistoryStartsAnew(t *testing.T) {
	written := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	const good = `{"time":"2026-11-23T05:00:00Z","type":"leader"}` + "\n"
	for name, damage := range map[string]func(path string) error{
		"line 2":                    written(good + "hello\n" + good),
		"it is not a change":        written("{}\n"),
		"buffer full":               written(strings.Repeat("x", 20<<10) + "\n"),
		"it is not a regular file":  func(path string) error { return unix.Mkfifo(path, 0o600) },
		"it is not a regular file ": func(path string) error { return os.Mkdir(path, 0o700) },
		"at most": func(path string) error {
			return errors.Join(written(good)(path), os.Truncate(path, 65<<20))
		},
		"too many levels": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		path := filepath.Join(t.TempDir(), "history")
		if err := damage(path); err != nil {
			t.Fatal(err)
		}
		l, err := keep(t, path)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(name)) || strings.Contains(err.Error(), "\n") || len(terms(l)) != 0 {
			t.Errorf("%s: %v, %v", name, terms(l), err)
		}
		if _, err := os.Lstat(path + ".damaged"); err != nil {
			t.Errorf("%s: it was not set aside: %v", name, err)
		}
		add(l, 5)
		flush(t, l)
		if l, err := keep(t, path); err != nil || !slices.Equal(terms(l), []uint64{5}) {
			t.Errorf("%s: after that %v, %v", name, terms(l), err)
		}
	}
}

// A disk that refuses writes is reported once. When it accepts writes again, all missed changes are written.
func TestAHistoryThatCanNotBeWrittenIsReportedAndMadeUpFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if err := os.Symlink("/dev/full", path+".new"); err != nil { // links are refused, so each write fails
		t.Fatal(err)
	}
	l := history.New(0)
	reported := make(chan error, 10)
	if err := l.Keep(path, func(err error) { reported <- err }); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // a directory at the path, so no change can be added to the file
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	add(l, 1)
	if err := <-reported; !strings.Contains(err.Error(), "can't be written") {
		t.Error(err)
	}
	add(l, 2)
	cancel()
	<-done
	if l.Flush() == nil || len(reported) != 0 {
		t.Errorf("%d more reports", len(reported))
	}
	if err := errors.Join(os.Remove(path), os.Remove(path+".new")); err != nil {
		t.Fatal(err)
	}
	add(l, 3)
	flush(t, l)
	if next, err := keep(t, path); err != nil || !slices.Equal(terms(next), []uint64{1, 2, 3}) {
		t.Errorf("the next run has %v: %v", terms(next), err)
	}
}

// An agent that was started again hears the leader that it had followed before. That is not an election.
func TestALeaderThatIsHeardAgainAfterARestartWasNotElected(t *testing.T) {
	c := leads("default", "c", 4, 20)
	c.Leader.ID = "id-c"
	self := leads("default", "a", 5, 40)
	self.Type, self.Leader.ID = api.ChangeRestarted, "id-a"
	unheard := api.Transition{Election: "default", Type: api.ChangeRestarted}
	command := api.Transition{Election: "default", Type: api.ChangeCommand}
	other := leads("payments", "b", 9, 30)
	for name, run := range map[string]struct {
		earlier, later []api.Transition
		want           bool
	}{
		"the same leader":                       {earlier: []api.Transition{c}, want: true},
		"restarted, and not heard of yet":       {earlier: []api.Transition{c, unheard}, later: []api.Transition{unheard}, want: true},
		"a command, and another election":       {earlier: []api.Transition{c, command}, later: []api.Transition{other, command}, want: true},
		"nobody led at the end":                 {earlier: []api.Transition{c, nobody("default", 4, 30)}},
		"another leader":                        {earlier: []api.Transition{leads("default", "b", 4, 10)}},
		"a lower term":                          {earlier: []api.Transition{leads("default", "c", 3, 10)}},
		"this agent led since":                  {earlier: []api.Transition{c, self}},
		"this agent leads on":                   {earlier: []api.Transition{c}, later: []api.Transition{self}},
		"lost in this run":                      {earlier: []api.Transition{c}, later: []api.Transition{nobody("default", 4, 50)}},
		"nothing is known of the runs before":   {},
		"a change of this run is not earlier's": {later: []api.Transition{c}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history")
			first, _ := keep(t, path)
			for _, change := range run.earlier {
				change.Time = time.Unix(1, 0)
				first.Add(change)
			}
			flush(t, first)
			l := history.New(ms(100), "default")
			if err := l.Keep(path, nil); err != nil {
				t.Fatal(err)
			}
			for _, change := range run.later {
				l.Add(change)
			}
			if again := l.HeardAgain("default", "id-c", 4); again != run.want {
				t.Fatal(again)
			}
			c := c
			c.BoottimeNS = ms(112)
			l.Add(c)
			all := l.List("default", 1)
			if gap := all[0].GapMS > 0 || all[0].VacantMS > 0; run.want && gap {
				t.Errorf("%+v", all[0])
			}
			if l.HeardAgain("default", "id-c", 4) {
				t.Error("it is heard again twice")
			}
		})
	}
}

// The file's time shows until when the former process ran. So a start can report for how long no process ran.
func TestAStartShowsForHowLongNoProcessRan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	first, err := keep(t, path)
	if err != nil {
		t.Fatal(err)
	}
	first.Started(time.Now(), 1)
	flush(t, first)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	flush(t, first) // the process still runs, and no change was added
	info, err := os.Stat(path)
	if err != nil || info.ModTime().Before(old.Add(time.Minute)) {
		t.Fatalf("the file was last marked at %v, %v", info.ModTime(), err)
	}
	second, err := keep(t, path)
	if err != nil {
		t.Fatal(err)
	}
	second.Started(info.ModTime().Add(time.Hour), 2)
	starts := second.List("payments", 10) // starts are listed for each election
	if len(starts) != 2 || starts[0].DownMS != 0 || starts[1].DownMS != time.Hour.Milliseconds() || starts[1].Type != api.ChangeStarted {
		t.Errorf("%+v", starts)
	}
	second.Add(leads("payments", "a", 1, 3))
	if got := second.List("payments", 1); got[0].VacantMS != 0 {
		t.Errorf("a start counts as the begin of a vacancy: %+v", got)
	}
}
