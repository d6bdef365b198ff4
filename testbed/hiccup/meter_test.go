package hiccup

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

const ms = time.Millisecond

func TestWhatIsLateIsAHiccupWhileItLastsAndAfter(t *testing.T) {
	m := &Meter{}
	began := boottime.Now()
	p := m.probe("disk", -time.Second)
	if total, _ := Total(m.Between(began.Add(-time.Second), election.Never)); total < time.Second {
		t.Errorf("while it lasted it was told as %s", total)
	}
	p.nap = time.Hour
	m.tried(p)
	if total, _ := Total(m.Between(began.Add(-time.Second), election.Never)); total < time.Second {
		t.Errorf("it was told as %s", total)
	}
	if later := m.Between(boottime.Now(), election.Never); len(later) != 0 {
		t.Errorf("what ended before was told: %v", later)
	}
}

func TestWhatIsInTimeOrTriedNoMoreIsNoHiccup(t *testing.T) {
	m := &Meter{}
	m.tried(m.probe("processor 0", time.Hour))
	m.giveUp(m.probe("processor 1", -time.Hour))
	if seen := m.Between(0, election.Never); len(seen) != 0 {
		t.Errorf("%v", seen)
	}
}

func TestHiccupsThatOverlapCountOnce(t *testing.T) {
	at := func(d time.Duration) election.Instant { return election.Instant(time.Hour + d) }
	hiccups := []Hiccup{
		{"disk", at(0), at(300 * ms)}, {"processor 0", at(100 * ms), at(200 * ms)}, {"processor 1", at(250 * ms), at(400 * ms)},
		{"disk", at(1000 * ms), at(1100 * ms)},
	}
	total, longest := Total(hiccups)
	if total != 500*ms || longest != 400*ms {
		t.Errorf("%s in all, %s at the longest; want 500 ms, 400 ms", total, longest)
	}
	want := "the machine was paused for 500ms, 400ms at most (disk, processor 0, processor 1)"
	if got := Describe(hiccups); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAHiccupIsCutToTheTimeAskedFor(t *testing.T) {
	m := &Meter{}
	at := func(d time.Duration) election.Instant { return election.Instant(time.Hour + d) }
	m.note(Hiccup{"disk", at(0), at(300 * ms)})
	got := m.Between(at(100*ms), at(200*ms))
	if want := []Hiccup{{"disk", at(100 * ms), at(200 * ms)}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := m.Between(at(300*ms), at(400*ms)); len(got) != 0 {
		t.Errorf("it was over, and is told: %v", got)
	}
}

func TestOnlyTheNewestAreKept(t *testing.T) {
	m := &Meter{}
	for i := range 3 * maxKept {
		m.note(Hiccup{"disk", election.Instant(i) * election.Instant(time.Second), election.Instant(i+1) * election.Instant(time.Second)})
	}
	seen := m.Between(0, election.Never)
	if len(seen) > maxKept || !slices.Contains(seen, Hiccup{"disk", election.Instant(3*maxKept-1) * election.Instant(time.Second), election.Instant(3*maxKept) * election.Instant(time.Second)}) {
		t.Errorf("%d are kept, up to %v", len(seen), seen[len(seen)-1])
	}
}

func TestNoMeterHasSeenNothing(t *testing.T) {
	var m *Meter
	m.Stop()
	if seen := m.Between(0, election.Never); seen != nil {
		t.Errorf("%v", seen)
	}
}

func TestADiskThatCantBeWrittenIsSaid(t *testing.T) {
	m, err := Start(t.TempDir() + "/missing")
	defer m.Stop()
	if err == nil {
		t.Error("no error")
	}
}

func TestEachProcessorAndTheDiskAreTriedAgainAndAgain(t *testing.T) {
	m, err := Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	if runtime.GOOS == "linux" && len(m.probes) != min(runtime.NumCPU(), maxProcessors)+1 {
		t.Errorf("%d probes on %d processors and a disk", len(m.probes), runtime.NumCPU())
	}
	look := time.NewTicker(ms)
	defer look.Stop()
	late := time.After(time.Minute)
	for _, p := range m.probes {
		seen := map[election.Instant]bool{}
		for len(seen) < 3 {
			select {
			case <-look.C:
			case <-late:
				t.Fatalf("%s is tried no more", p.what)
			}
			m.mu.Lock()
			seen[p.due] = true
			m.mu.Unlock()
		}
	}
}
