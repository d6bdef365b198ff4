package keeper

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/alarm"
	"github.com/doyen-election/doyen/internal/leasepage"
)

// dead returns what an agent left whose hook had run with `leading`, for default and for pay. Its
// hooks write what they see into the file.
func dead(t *testing.T) (known Known, seen string) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "doyen") // a record is in memory
	if err != nil {
		t.Skipf("a record needs a tmpfs at /dev/shm, which CI has: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	seen = filepath.Join(dir, "seen")
	known = Known{Record: filepath.Join(dir, "a.record"), Lock: filepath.Join(dir, "lock"), Pages: filepath.Join(dir, "pages"), Peer: "peer-a"}
	hook := `echo "$DOYEN_EVENT $DOYEN_ELECTION $DOYEN_TERM $(ls ` + known.Record + ` 2>/dev/null)" >>` + seen
	known.Hooks = map[election.Name]string{election.Default: hook, everyOther: hook}
	r, _, err := record.Open(record.Config{Path: known.Record, Peer: "peer-a", Run: 7, Born: 1, Lease: time.Minute})
	if r == nil || err != nil {
		t.Fatal(err)
	}
	until := alarm.Now() + int64(time.Minute)
	var rows []election.Authority
	for _, name := range []election.Name{election.Default, "pay", "other"} {
		rows = append(rows, election.Authority{Election: name, Highest: 3, Term: 3, Until: election.Instant(until), Priority: 100})
	}
	ran := record.Actors{Hook: record.Hook{Term: 3, Finished: true}}
	for _, err := range []error{
		r.Write(&election.LifeRecord{Rows: rows}), r.WriteActors(election.Default, ran), r.WriteActors("pay", ran),
		r.Close(), os.Mkdir(known.Pages, 0o750), os.WriteFile(known.Lock, nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := leasepage.Create(known.Pages, "default", 7)
	if err == nil {
		err = page.Set(3, until)
	}
	if err != nil {
		t.Fatal(err)
	}
	return known, seen
}

func buried(t *testing.T, known Known, seen string) (hooks string, pages int, err error) {
	t.Helper()
	err = bury(known)
	text, _ := os.ReadFile(seen) // there is none where no hook ran
	left, _ := os.ReadDir(known.Pages)
	return string(text), len(left), err
}

// The record is destroyed before a hook runs: no life goes on after it (K6).
func TestK6ALineageIsEndedByItsRecordFirst(t *testing.T) {
	known, seen := dead(t)
	hooks, pages, err := buried(t, known, seen)
	if err != nil || pages != 0 {
		t.Errorf("%v, %d pages are left", err, pages)
	}
	if hooks != "none default 3 \nnone pay 3 \n" && hooks != "none pay 3 \nnone default 3 \n" {
		t.Errorf("hooks saw %q", hooks)
	}
	if _, err := os.Lstat(known.Record); err == nil {
		t.Error("there still is a record")
	}
}

// Then the hooks are run that an agent runs when it starts.
func TestHooksAndPagesEndWithoutARecordToo(t *testing.T) {
	for what, spoil := range map[string]func(*Known) error{
		"none was kept":          func(k *Known) error { k.Record = ""; return nil },
		"it is gone":             func(k *Known) error { return os.Remove(k.Record) },
		"it is another agent's":  func(k *Known) error { k.Peer = "peer-b"; return nil },
		"it is damaged":          func(k *Known) error { return os.Truncate(k.Record, 10) },
		"no lock is left either": func(k *Known) error { k.Record = ""; return os.Remove(k.Lock) },
	} {
		t.Run(what, func(t *testing.T) {
			known, seen := dead(t)
			if err := spoil(&known); err != nil {
				t.Fatal(err)
			}
			hooks, pages, _ := buried(t, known, seen)
			if !strings.HasPrefix(hooks, "none default 0 ") || strings.Count(hooks, "\n") != 1 || pages != 0 {
				t.Errorf("hooks saw %q, %d pages are left", hooks, pages)
			}
			if _, err := os.Lstat(known.Record); known.Record != "" && err == nil {
				t.Error("there still is a record")
			}
		})
	}
}

// Somebody has started the agent by hand meanwhile, and it may lead.
func TestNothingOfAnotherProcessIsEnded(t *testing.T) {
	known, seen := dead(t)
	other, err := os.Open(known.Lock)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if hooks, pages, err := buried(t, known, seen); err == nil || hooks != "" || pages != 1 {
		t.Errorf("%v, hooks saw %q, %d pages are left", err, hooks, pages)
	}
	if _, err := os.Stat(known.Record); err != nil {
		t.Error(err)
	}
}

func TestWhatALifeTellsComesBack(t *testing.T) {
	k := Known{Record: "/r", Lock: "/l", Pages: "/p", Peer: "12D3", Hooks: map[election.Name]string{election.Default: "a b", everyOther: "c", "pay": "d\ne", "x": ""}}
	var p page
	p.tell(k.text())
	if got := knownFrom(p.told()); !reflect.DeepEqual(got, k) {
		t.Errorf("%+v came back as %+v", k, got)
	}
	if k.hook("x") != "" || k.hook("other") != "c" || (Known{Hooks: map[election.Name]string{everyOther: "c"}}).hook(election.Default) != "" {
		t.Error("an election has another one's command")
	}
	k.Hooks["y"] = strings.Repeat("x", maxText)
	p.tell(k.text())
	if got := knownFrom(p.told()); got.Peer != k.Peer || got.Lock != "/l" || len(got.Hooks) != 0 {
		t.Errorf("hooks without room: %+v", got)
	}
	if got := knownFrom("/r\x00/p\x0012D3\x00default\x00a b"); got.Lock != "" || got.hook(election.Default) != "a b" {
		t.Errorf("of a life of 0.3.0: %+v", got)
	}
	if got := knownFrom("torn"); got.Peer != "" {
		t.Errorf("%+v of nothing", got)
	}
}
