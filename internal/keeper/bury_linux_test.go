package keeper

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// dead returns the files of an agent that led and died.
func dead(t *testing.T) Given {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "doyen") // as a record in memory
	if err != nil {
		t.Skipf("a record needs a tmpfs at /dev/shm, which CI has: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	of := Given{Record: filepath.Join(dir, "a.record"), Lock: filepath.Join(dir, "lock"), Pages: filepath.Join(dir, "pages")}
	r, _, err := record.Open(record.Config{Path: of.Record, Peer: "peer-a", Run: 7, Born: 1, Lease: time.Minute})
	if r == nil || err != nil {
		t.Fatal(err)
	}
	until := alarm.Now() + int64(time.Minute)
	var rows []election.Authority
	for _, name := range []election.Name{election.Default, "pay", "other"} {
		rows = append(rows, election.Authority{Election: name, Highest: 3, Term: 3, Until: election.Instant(until), Priority: 100})
	}
	r.Write(&election.LifeRecord{Rows: rows})
	for _, err := range []error{
		r.Close(), os.Mkdir(of.Pages, 0o750), os.WriteFile(of.Lock, nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := leasepage.Create(of.Pages, "default", 7)
	if err == nil {
		err = page.Set(3, until)
	}
	if err != nil {
		t.Fatal(err)
	}
	return of
}

func buried(of Given, peer election.PeerID) (pages int, err error) {
	err = bury(of, peer)
	left, _ := os.ReadDir(of.Pages)
	return len(left), err
}

func TestK6ALineageIsEndedByItsRecordFirst(t *testing.T) {
	of := dead(t)
	if pages, err := buried(of, "peer-a"); err != nil || pages != 0 {
		t.Errorf("%v, %d pages are left", err, pages)
	}
	if _, err := os.Lstat(of.Record); err == nil {
		t.Error("there still is a record")
	}
}

func TestPagesEndWithoutARecordToo(t *testing.T) {
	for what, spoil := range map[string]func(*Given, *election.PeerID) error{
		"none was kept":          func(g *Given, peer *election.PeerID) error { g.Record = ""; return nil },
		"it is gone":             func(g *Given, peer *election.PeerID) error { return os.Remove(g.Record) },
		"it is another agent's":  func(g *Given, peer *election.PeerID) error { *peer = "peer-b"; return nil },
		"it is damaged":          func(g *Given, peer *election.PeerID) error { return os.Truncate(g.Record, 10) },
		"no lock is left either": func(g *Given, peer *election.PeerID) error { g.Record = ""; return os.Remove(g.Lock) },
	} {
		t.Run(what, func(t *testing.T) {
			of, peer := dead(t), election.PeerID("peer-a")
			if err := spoil(&of, &peer); err != nil {
				t.Fatal(err)
			}
			if pages, _ := buried(of, peer); pages != 0 {
				t.Errorf("%d pages are left", pages)
			}
			if _, err := os.Lstat(of.Record); of.Record != "" && err == nil {
				t.Error("there still is a record")
			}
		})
	}
}

// An agent that was started by hand may lead by now.
func TestNothingOfAnotherProcessIsEnded(t *testing.T) {
	of := dead(t)
	other, err := os.Open(of.Lock)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if pages, err := buried(of, "peer-a"); err == nil || pages != 1 {
		t.Errorf("%v, %d pages are left", err, pages)
	}
	if _, err := os.Stat(of.Record); err != nil {
		t.Error(err)
	}
}

func TestWhatALifeTellsComesBack(t *testing.T) {
	for _, k := range []Known{{Record: "/r", Pages: "/p", Peer: "12D3", Act: true}, {Pages: "/p", Peer: "12D3"}} {
		var p page
		p.tell(k.text())
		if got := knownFrom(p.told()); got != k {
			t.Errorf("%+v came back as %+v", k, got)
		}
	}
	if got := knownFrom("/r\x00/p\x0012D3\x00default\x00a b"); got.Peer != "12D3" || got.Act {
		t.Errorf("of a life of 0.3.0: %+v", got)
	}
	if got := knownFrom("torn"); got.Peer != "" {
		t.Errorf("%+v of nothing", got)
	}
}

// An attacker who controls the agent can write anything into the keeper's page.
func TestAHostilePageChangesNothingThatTheKeeperExecutesOrRemoves(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	own, others := dead(t), dead(t)
	own.Program = self
	k := keepGiven(t, nil, own, nil, "hostile", others.Record, others.Pages, others.Lock)
	for n := range 2 {
		if got := k.line("tries"); got != "true 0" {
			t.Errorf("what a life found of its keeper: %s", got)
		}
		if n == 0 {
			if acts := k.line("acts"); acts != "[given]" {
				t.Errorf("it ran %s", acts)
			}
		}
		k.send(k.cmd.Process.Pid, syscall.SIGHUP)
	}
	if code := k.code(); code != exitConfig {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(k.read.String(), "acts [hostile]") {
		t.Error("it ran what the life had written")
	}
	for of, want := range map[*Given]int{&own: 0, &others: 1} {
		pages, err := os.ReadDir(of.Pages)
		_, recordErr := os.Stat(of.Record)
		if _, lockErr := os.Stat(of.Lock); len(pages) != want || (recordErr == nil) != (want == 1) || lockErr != nil {
			t.Errorf("%d pages (%v), record: %v, lock: %v", len(pages), err, recordErr, lockErr)
		}
	}
}

func TestWhatAKeeperIsGivenComesBack(t *testing.T) {
	g := Given{"json", "info", "/p", []string{"doyen", "agent", ""}, []string{"--config=\xff\n"}, "", "/l", "/s.lease"}
	if got, err := given(g.words()); err != nil || !reflect.DeepEqual(got, g) {
		t.Errorf("%+v came back as %+v, %v", g, got, err)
	}
	for n := range 9 {
		if got, err := given(g.words()[:n]); err == nil {
			t.Errorf("of %d words: %+v", n, got)
		}
	}
}
