package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// former leaves the record of a life that has died.
func former(t testing.TB, dir string) (Config, *Past) {
	t.Helper()
	c := config(dir, 7)
	r, _ := begin(t, c)
	filled(t, r)
	die(t, r)
	r, past := begin(t, c)
	die(t, r)
	return c, past
}

// A record that is refused costs a lease. The reason is one line, and the new lineage has a record.
func TestWhatDoesNotFitBeginsANewLineage(t *testing.T) {
	edit := func(at int64, with ...byte) func(testing.TB, string) error {
		return func(_ testing.TB, path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(with, at)
			return errors.Join(err, f.Close())
		}
	}
	copied := func(_ testing.TB, path string) error { // another file with the same bytes
		from, err := os.Open(path)
		if err != nil {
			return err
		}
		defer from.Close()
		to, err := os.OpenFile(path+".copy", os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, from)
		return errors.Join(err, to.Close(), os.Rename(path+".copy", path))
	}
	for want, change := range map[string]func(testing.TB, string) error{
		"it is a copy":          copied,
		"it is not a record":    edit(0, 'x'),
		"its format is 1":       edit(8, 1), // the format of 0.3.0
		"it is damaged":         edit(40, 1, 1, 1, 1),
		"its lineage was ended": func(_ testing.TB, path string) error { return os.Truncate(path, 0) },
		"it is not a":           func(_ testing.TB, path string) error { return os.Truncate(path, 5) },
		"it is not":             func(_ testing.TB, path string) error { return os.Truncate(path, maxSize) },
		"is damaged":            func(_ testing.TB, path string) error { return os.Truncate(path, 50) },
		"may use it (mode 0620": func(_ testing.TB, path string) error { return os.Chmod(path, 0o620) },
		"may use it (mode 0604": func(_ testing.TB, path string) error { return os.Chmod(path, 0o604) },
		"it is not a regular file": func(_ testing.TB, path string) error {
			return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
		},
		"use it (mode 0600, user 1234": func(t testing.TB, path string) error { return chown(t, path, 1234) },
	} {
		t.Run(want, func(t *testing.T) {
			c, _ := former(t, inTmpfs(t))
			if err := change(t, c.Path); err != nil {
				t.Fatal(err)
			}
			c.Run = 99
			r, past, err := Open(c) // the error is why the former record is not used
			t.Cleanup(func() { r.Close() })
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || past != nil || r.Lineage().ID != 99 {
				t.Fatalf("lineage %+v, past %v, %v; want …%s…", r.Lineage(), past, err, want)
			}
			filled(t, r)
			die(t, r)
			if _, past := begin(t, c); past == nil || past.ID != 99 || len(past.Rows) != 2 {
				t.Errorf("its own next life finds %+v", past)
			}
		})
	}
}

func chown(t testing.TB, path string, uid int) error {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user; CI runs it as root")
	}
	return os.Chown(path, uid, -1)
}

// K3: the record of another kernel, clock, agent or file is refused. A file is identified by its number and its
// device, since another device may use the same number.
func TestK3ARecordOfAnotherHostAgentOrFileIsRefused(t *testing.T) {
	c, _ := former(t, inTmpfs(t))
	r, _ := begin(t, c)
	here, err := headerOf(r.file, c.Peer)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.state.header.judge(here); err != nil {
		t.Error("the record itself:", err)
	}
	for want, change := range map[string]func(*header){
		"from an earlier boot":               func(h *header) { h.Boot[15]++ },
		"from another time namespace":        func(h *header) { h.TimeNS++ },
		"belongs to another agent (peer-a)":  func(h *header) { h.Peer = "peer-b" },
		"it is a copy: the record was anoth": func(h *header) { h.Device++ },
		"it is a copy: the record was ano":   func(h *header) { h.Inode++ },
	} {
		other := here
		change(&other)
		if err := r.state.header.judge(other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want …%s…", err, want)
		}
	}
	die(t, r)
	c.Peer = "peer-b"
	if _, _, err := inherit(c, 0); err == nil || !strings.Contains(err.Error(), "belongs to another agent") {
		t.Error("as another agent:", err)
	}
}

// K2: only the lock proves that the former life has ended.
func TestALifeThatRunsKeepsItsRecord(t *testing.T) {
	c := config(inTmpfs(t), 7)
	r, _ := begin(t, c)
	filled(t, r)
	second := c
	second.Run = 8
	if other, past, err := Open(second); other != nil || past != nil || err == nil || !strings.Contains(err.Error(), "--record-dir") || !strings.Contains(err.Error(), "locked") {
		t.Fatalf("%v, %v, %v", other, past, err)
	}
	if _, past := (func() (*Record, *Past) { die(t, r); return begin(t, second) })(); past == nil || past.ID != 7 {
		t.Errorf("after its death: %+v", past)
	}
}

func TestALifeWaitsForTheOneThatIsJustDying(t *testing.T) {
	c := config(inTmpfs(t), 7)
	r, _ := begin(t, c)
	go r.Close()
	if _, past := begin(t, c); past == nil {
		t.Error("it went on without")
	}
}

func TestOnlyMemoryIsTaken(t *testing.T) {
	dir, err := os.MkdirTemp(".", "disk")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if InMemory(dir) == nil {
		t.Skip("needs a directory on a disk, and the sources are in memory here; CI has them on a disk")
	}
	r, past, err := Open(config(dir, 7))
	if r != nil || past != nil || err == nil || !strings.Contains(err.Error(), "--record-dir") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, %v, %v", r, past, err)
	}
	if r, _, err := Open(config(filepath.Join(dir, "missing"), 7)); r != nil || err == nil {
		t.Errorf("in a directory that is missing: %v, %v", r, err)
	}
	for _, d := range []string{dir, filepath.Join(dir, "missing")} {
		if err := Check(d); err == nil || !strings.Contains(err.Error(), "--record-dir") {
			t.Errorf("%s: %v", d, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// After a boot, the directory is missing: it was in memory.
func TestADirectoryThatIsMissingInMemoryIsMade(t *testing.T) {
	dir := filepath.Join(inTmpfs(t), "doyen")
	if err := Check(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("Check has made it")
	}
	r, _, err := Open(config(dir, 7))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := Check(filepath.Join(dir, "missing", "too")); err == nil {
		t.Error("only one directory is made")
	}
}

// If other users could remove or replace the record, no record is kept, even for an agent of root.
func TestADirectoryThatOthersMayChangeIsRefused(t *testing.T) {
	for _, d := range []struct {
		mode fs.FileMode
		want string
	}{
		{0o700, ""}, {0o755, ""}, {0o777 | fs.ModeSticky, ""},
		{0o777, "mode 0777"}, {0o770, "mode 0770"}, {0o702, "mode 0702"},
	} {
		dir := inTmpfs(t)
		if err := os.Chmod(dir, d.mode); err != nil {
			t.Fatal(err)
		}
		r, _, err := Open(config(dir, 7))
		if (r != nil) != (d.want == "") || d.want != "" && !strings.Contains(fmt.Sprint(err), d.want) {
			t.Errorf("%s: %v, %v, want %q", d.mode, r, err, d.want)
		}
		if checked := Check(dir); fmt.Sprint(checked) != fmt.Sprint(err) {
			t.Errorf("%s: Check says %v, Open %v", d.mode, checked, err)
		}
		if r != nil {
			r.Close()
		}
	}
	if os.Geteuid() != 0 {
		t.Log("needs root for a directory of another user; CI runs this as root too")
		return
	}
	dir := inTmpfs(t)
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if r, _, err := Open(config(dir, 7)); r != nil || !strings.Contains(fmt.Sprint(err), "user 12345") {
		t.Errorf("a directory of another user: %v, %v", r, err)
	}
}

// K6: no life continues from a record that was destroyed, even if the file gets its name back.
func TestADestroyedRecordIsNone(t *testing.T) {
	c := config(inTmpfs(t), 7)
	r, _ := begin(t, c)
	filled(t, r)
	kept := c.Path + ".kept"
	if err := os.Link(c.Path, kept); err != nil {
		t.Fatal(err)
	}
	if err := r.Destroy(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(c.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has its name: %v", err)
	}
	r.Write(&election.LifeRecord{Spent: 4})
	if err := errors.Join(r.failed, r.Destroy()); err != nil {
		t.Error(err)
	}
	if bytes, err := os.ReadFile(kept); err != nil || strings.Trim(string(bytes), "\x00") != "" {
		t.Errorf("something of it is left: %v", err)
	}
	die(t, r)
	if err := os.Rename(kept, c.Path); err != nil {
		t.Fatal(err)
	}
	if _, past, err := Open(c); past != nil || err == nil {
		t.Errorf("gone on with: %+v, %v", past, err)
	}
}

// If the file is truncated while its life runs, the record ends, and the life goes on.
func TestARecordThatShrinksEndsNobody(t *testing.T) {
	c := config(inTmpfs(t), 7)
	r, _ := begin(t, c)
	filled(t, r)
	if err := os.Truncate(c.Path, r.end-1); err != nil {
		t.Fatal(err)
	}
	if r.Problem(0) != "" {
		t.Error(r.Problem(0))
	}
	r.Write(&election.LifeRecord{Spent: 9, Rows: []election.Authority{{Election: "new", Highest: 1}}})
	if !errors.Is(r.failed, errSize) || !strings.Contains(r.Problem(0), r.failed.Error()) || strings.Contains(r.Problem(0), "\n") {
		t.Errorf("written: %v", r.failed)
	}
	r.Write(&election.LifeRecord{Spent: 10}) // these writes have no effect
	r.SetVoters(nil)
	r.WriteProgram("new", acting.Program)
	die(t, r)
	if _, past := begin(t, c); past != nil {
		t.Errorf("gone on with: %+v", past)
	}
}

// A record may have more elections than an agent can have at once.
func TestElectionsHaveNoBound(t *testing.T) {
	c := config(inTmpfs(t), 7)
	r, _ := begin(t, c)
	l := &election.LifeRecord{}
	for i := range 20_000 {
		l.Rows = append(l.Rows, election.Authority{Election: election.Name(fmt.Sprintf("e%05d", i)), Highest: 1})
	}
	if r.Write(l); r.failed != nil {
		t.Fatal(r.failed)
	}
	for i := range 20 { // the log is rewritten
		l.Rows[i].Highest++
		if r.Write(l); r.failed != nil {
			t.Fatal(r.failed)
		}
	}
	die(t, r)
	if _, past := begin(t, c); len(past.Rows) != len(l.Rows) {
		t.Errorf("%d rows", len(past.Rows))
	}
}

func TestWithoutARecordEverythingIsNothing(t *testing.T) {
	var r *Record
	r.Write(&election.LifeRecord{})
	r.WriteProgram("e", acting.Program)
	r.SetVoters(places)
	r.Suspended()
	if err := errors.Join(r.Destroy(), r.Close()); err != nil {
		t.Error(err)
	}
	if r.Problem(0) != "" || r.Voters() != nil || r.Lineage() != (election.Lineage{}) || (*Past)(nil).Of() != nil {
		t.Error("there is something")
	}
}

func TestDraftsOfDeadMakersAreRemoved(t *testing.T) {
	c := config(inTmpfs(t), 7)
	if err := os.WriteFile(c.Path+".new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	begin(t, c)
	if left, _ := os.ReadDir(filepath.Dir(c.Path)); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// After a suspend, CLOCK_BOOTTIME and so all deadlines may be wrong by a second (K3).
func TestARecordFromBeforeASuspendIsRefused(t *testing.T) {
	c := config(inTmpfs(t), 7)
	r, _ := begin(t, c)
	filled(t, r)
	r.change(func(s *state, it *item) { it.Life = &life{1, time.Second, s.life.Ahead - int64(time.Second)} }) // as if the host had been suspended for a second since
	die(t, r)
	c.Run = 8
	next, past, err := Open(c)
	t.Cleanup(func() { next.Close() })
	if past != nil || !errors.Is(err, errSuspended) || next.Lineage().ID != 8 {
		t.Fatalf("lineage %+v, past %v, %v", next.Lineage(), past, err)
	}
}

// A suspend that the former life has reported to its elector does not end the lineage (K3).
func TestARecordFromAfterAHandledSuspendGoesOn(t *testing.T) {
	c := config(inTmpfs(t), 7)
	r, _ := begin(t, c)
	filled(t, r)
	r.change(func(s *state, it *item) { it.Life = &life{1, time.Second, s.life.Ahead - int64(time.Second)} }) // as if the host had been suspended for a second since
	r.Suspended()
	die(t, r)
	c.Run = 8
	if next, past := begin(t, c); past == nil || next.Lineage().ID != 7 || next.Lineage().Life != 2 {
		t.Fatalf("lineage %+v, past %v", next.Lineage(), past)
	}
}
