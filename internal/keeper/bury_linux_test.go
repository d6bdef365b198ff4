package keeper

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// dead returns what an agent left that led.
func dead(t *testing.T) Known {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "doyen") // a record is in memory
	if err != nil {
		t.Skipf("a record needs a tmpfs at /dev/shm, which CI has: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	known := Known{Record: filepath.Join(dir, "a.record"), Lock: filepath.Join(dir, "lock"), Pages: filepath.Join(dir, "pages"), Peer: "peer-a"}
	r, _, err := record.Open(record.Config{Path: known.Record, Peer: "peer-a", Run: 7, Born: 1, Lease: time.Minute})
	if r == nil || err != nil {
		t.Fatal(err)
	}
	until := alarm.Now() + int64(time.Minute)
	var rows []election.Authority
	for _, name := range []election.Name{election.Default, "pay", "other"} {
		rows = append(rows, election.Authority{Election: name, Highest: 3, Term: 3, Until: election.Instant(until), Priority: 100})
	}
	for _, err := range []error{
		r.Write(&election.LifeRecord{Rows: rows}),
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
	return known
}

func buried(known Known) (pages int, err error) {
	err = bury(known)
	left, _ := os.ReadDir(known.Pages)
	return len(left), err
}

func TestK6ALineageIsEndedByItsRecordFirst(t *testing.T) {
	known := dead(t)
	if pages, err := buried(known); err != nil || pages != 0 {
		t.Errorf("%v, %d pages are left", err, pages)
	}
	if _, err := os.Lstat(known.Record); err == nil {
		t.Error("there still is a record")
	}
}

func TestPagesEndWithoutARecordToo(t *testing.T) {
	for what, spoil := range map[string]func(*Known) error{
		"none was kept":          func(k *Known) error { k.Record = ""; return nil },
		"it is gone":             func(k *Known) error { return os.Remove(k.Record) },
		"it is another agent's":  func(k *Known) error { k.Peer = "peer-b"; return nil },
		"it is damaged":          func(k *Known) error { return os.Truncate(k.Record, 10) },
		"no lock is left either": func(k *Known) error { k.Record = ""; return os.Remove(k.Lock) },
	} {
		t.Run(what, func(t *testing.T) {
			known := dead(t)
			if err := spoil(&known); err != nil {
				t.Fatal(err)
			}
			if pages, _ := buried(known); pages != 0 {
				t.Errorf("%d pages are left", pages)
			}
			if _, err := os.Lstat(known.Record); known.Record != "" && err == nil {
				t.Error("there still is a record")
			}
		})
	}
}

// Somebody has started the agent by hand meanwhile, and it may lead.
func TestNothingOfAnotherProcessIsEnded(t *testing.T) {
	known := dead(t)
	other, err := os.Open(known.Lock)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if pages, err := buried(known); err == nil || pages != 1 {
		t.Errorf("%v, %d pages are left", err, pages)
	}
	if _, err := os.Stat(known.Record); err != nil {
		t.Error(err)
	}
}

func TestWhatALifeTellsComesBack(t *testing.T) {
	for _, k := range []Known{{Record: "/r", Lock: "/l", Pages: "/p", Peer: "12D3", Act: []string{"doyen", "act", "--config", "a b\nc"}}, {Pages: "/p", Peer: "12D3", Act: []string{}}} {
		var p page
		p.tell(k.text())
		if got := knownFrom(p.told()); !reflect.DeepEqual(got, k) {
			t.Errorf("%+v came back as %+v", k, got)
		}
	}
	if got := knownFrom("/r\x00/p\x0012D3\x00default\x00a b"); got.Peer != "12D3" || got.Lock != "" || len(got.Act) != 0 {
		t.Errorf("of a life of 0.3.0: %+v", got)
	}
	if got := knownFrom("torn"); got.Peer != "" {
		t.Errorf("%+v of nothing", got)
	}
}
