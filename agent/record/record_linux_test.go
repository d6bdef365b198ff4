package record

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// inTmpfs returns a new directory in memory.
func inTmpfs(t testing.TB) string {
	t.Helper()
	for _, dir := range []string{"/dev/shm", os.TempDir(), "/run"} {
		if InMemory(dir) != nil {
			continue
		}
		if made, err := os.MkdirTemp(dir, "record"); err == nil {
			t.Cleanup(func() { os.RemoveAll(made) })
			return made
		}
	}
	t.Skip("there is no tmpfs that this user may write, such as /dev/shm; CI has one")
	return ""
}

func config(dir string, run election.RunID) Config {
	return Config{Path: filepath.Join(dir, "a.record"), Peer: "peer-a", Run: run, Born: 1000 + int64(run), Lease: time.Second}
}

// begin opens the record and wants no problem.
func begin(t testing.TB, c Config) (*Record, *Past) {
	t.Helper()
	r, past, err := Open(c)
	if err != nil || r == nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, past
}

// die ends a life as a kill does: nothing more is written, and the lock is released.
func die(t testing.TB, r *Record) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

var (
	payments = election.Authority{Election: "payments", Highest: 9, Term: 9, Until: 77, Priority: 100,
		Ending: election.Ending{Reason: election.ReasonTransferred, To: "peer-b", StopBy: 77}}
	defaults = election.Authority{Election: "default", Highest: 4, Term: 3, Until: election.Never, Priority: 5}
	acting   = Actors{Program: Program{Campaign: "ABC", UID: 1, PID: 2, Started: 3, Space: 10, Sockets: [MaxSockets]uint64{4, 5}, More: true, Priority: 6, Told: 7, Stopped: 8},
		Companion: Program{Campaign: "DEF", UID: 11, PID: 12, Started: 13, Space: 10, Told: 9, Stopped: 8}}
	places = []Voter{{"peer-a", netip.MustParseAddrPort("10.0.0.1:7946"), netip.MustParseAddrPort("[fd00::1]:1")}, {Peer: "peer-b"}}
)

// filled writes an entry of each kind.
func filled(t testing.TB, r *Record) {
	t.Helper()
	r.Write(&election.LifeRecord{Retired: 2, Spent: 3, Rows: []election.Authority{defaults, payments}})
	r.WriteProgram("payments", acting.Program)
	r.WriteCompanion("payments", acting.Companion)
	r.SetVoters(places)
	if r.failed != nil {
		t.Fatal(r.failed)
	}
}

func TestTheNextLifeHasAllOfTheFormer(t *testing.T) {
	dir := inTmpfs(t)
	r, past := begin(t, config(dir, 7))
	if past != nil || r.Lineage() != (election.Lineage{ID: 7, Life: 1, JoinedAt: 1007, Lease: time.Second}) {
		t.Fatalf("the first life: %+v, past %+v", r.Lineage(), past)
	}
	filled(t, r)
	die(t, r)

	longer := config(dir, 8)
	longer.Lease = 2 * time.Second
	r, past = begin(t, longer)
	want := &Past{
		Past: election.Past{
			Lineage:    election.Lineage{ID: 7, Life: 1, JoinedAt: 1007, Lease: time.Second},
			LifeRecord: election.LifeRecord{Retired: 2, Spent: 3, Rows: []election.Authority{defaults, payments}},
		},
		Actors: map[election.Name]Actors{"payments": acting}, Voters: places,
	}
	if !reflect.DeepEqual(past, want) {
		t.Errorf("got  %+v\nwant %+v", past, want)
	}
	if r.Lineage() != (election.Lineage{ID: 7, Life: 2, JoinedAt: 1007, Lease: time.Second}) {
		t.Errorf("the second life: %+v", r.Lineage())
	}
}

// Whatever is written, the record has the same content as a map to which the same changes were made.
func TestTheRecordIsWhatWasWritten(t *testing.T) {
	dir, seed := inTmpfs(t), rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	want := map[election.Name]election.Authority{}
	acts := map[election.Name]Actors{}
	var spent election.Term
	r, _ := begin(t, config(dir, 1))
	for life := range 20 {
		for range rng.IntN(40) {
			l := &election.LifeRecord{Spent: spent + 1}
			spent++
			for i := range 1000 {
				name := election.Name(fmt.Sprintf("e%04d", i))
				switch rng.IntN(20) {
				case 0:
					a := election.Authority{Election: name, Highest: 1 + election.Term(rng.Uint64N(1<<61)), Priority: rng.IntN(100)}
					if rng.IntN(3) > 0 {
						a.Term, a.Until = 1+election.Term(rng.Uint64N(uint64(a.Highest))), 1+election.Instant(rng.IntN(1e9))
					}
					if a.Term > 0 && rng.IntN(3) == 0 {
						a.Ending = election.Ending{Reason: election.ReasonResigned, To: "x", StopBy: a.Until}
					}
					want[name] = a
					l.Rows = append(l.Rows, a)
				case 1:
					delete(want, name)
					delete(acts, name)
					l.Rows = append(l.Rows, election.Authority{Election: name})
				}
			}
			if r.Write(l); r.failed != nil {
				t.Fatal(r.failed)
			}
			for name := range want {
				if rng.IntN(50) == 0 {
					acts[name] = Actors{Companion: Program{Told: election.Term(rng.Uint64())}}
					r.WriteCompanion(name, acts[name].Companion)
				}
			}
		}
		die(t, r)
		var past *Past
		r, past = begin(t, config(dir, 100))
		if past.Life != uint64(life+1) || past.Spent != spent || len(past.Rows) != len(want) || !reflect.DeepEqual(past.Actors, acts) {
			t.Fatalf("life %d, spent %d, %d rows, %d actors; want %d, %d, %d, %d", past.Life, past.Spent, len(past.Rows), len(past.Actors), life+1, spent, len(want), len(acts))
		}
		for _, a := range past.Rows {
			if a != want[a.Election] {
				t.Fatalf("got %+v, want %+v", a, want[a.Election])
			}
		}
	}
}

// The log is rewritten again and again, and its length stays within the bound.
func TestALogThatIsWrittenAnewSaysTheSame(t *testing.T) {
	c := config(inTmpfs(t), 7)
	r, _ := begin(t, c)
	filled(t, r)
	l := aThousand()
	longest := int64(0)
	for range 300 {
		for i := range l.Rows {
			l.Rows[i].Until += election.Instant(1 + i%2)
		}
		if r.Write(l); r.failed != nil {
			t.Fatal(r.failed)
		}
		longest = max(longest, r.end)
	}
	if r.end == longest || longest < compactAt/2 || longest > 2*compactAt || !r.Kept() {
		t.Errorf("up to %d bytes, now %d, kept %t", longest, r.end, r.Kept())
	}
	die(t, r)
	_, past := begin(t, c)
	if len(past.Rows) != 1002 || past.Rows[1000].Until != l.Rows[999].Until || !reflect.DeepEqual(past.Actors, map[election.Name]Actors{"payments": acting}) || !reflect.DeepEqual(past.Voters, places) {
		t.Errorf("%d rows, %+v", len(past.Rows), past.Actors)
	}
	if left, _ := os.ReadDir(filepath.Dir(c.Path)); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// A life may wait for the lock of a log that is then rewritten. It has to wait for the new file's lock (K2).
func TestK2ALogThatIsWrittenAnewStaysLocked(t *testing.T) {
	c := config(inTmpfs(t), 7)
	r, _ := begin(t, c)
	filled(t, r)
	f, err := openFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r.compact()
	if _, _, err := takeOver(c, f); !errors.Is(err, errMoved) {
		t.Errorf("the former file: %v", err)
	}
	if text, _ := io.ReadAll(io.NewSectionReader(f, 0, maxSize)); len(text) > 0 {
		t.Errorf("the former file has %d bytes", len(text))
	}
	if _, _, err := inherit(c, 0); !errors.Is(err, errLocked) {
		t.Errorf("the new one: %v", err)
	}
}

// A log whose name now belongs to another file is not rewritten, and that file is not changed.
func TestALogThatHasLostItsPlaceIsNotWrittenAnew(t *testing.T) {
	c := config(inTmpfs(t), 7)
	r, _ := begin(t, c)
	if err := errors.Join(os.Remove(c.Path), os.WriteFile(c.Path, []byte("another"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r.compact()
	if r.Write(&election.LifeRecord{Spent: 1}); r.failed != nil {
		t.Error(r.failed)
	}
	if text, _ := os.ReadFile(c.Path); string(text) != "another" || r.Kept() {
		t.Errorf("%q is there", text)
	}
}

func aThousand() *election.LifeRecord {
	l := &election.LifeRecord{}
	for i := range 1000 {
		l.Rows = append(l.Rows, election.Authority{Election: election.Name(fmt.Sprintf("election-%04d", i)), Highest: 5, Term: 5, Until: 1, Priority: 100})
	}
	return l
}

func BenchmarkAThousandLeases(b *testing.B) {
	r, _ := begin(b, config(inTmpfs(b), 1))
	l := aThousand()
	b.ReportAllocs()
	for b.Loop() {
		for i := range l.Rows {
			l.Rows[i].Until++
		}
		if r.Write(l); r.failed != nil {
			b.Fatal(r.failed)
		}
	}
}
