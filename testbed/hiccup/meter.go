package hiccup

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	// Least is the shortest time that counts. A thread that wakes up runs within some
	// milliseconds, even on a processor that fifty other threads want.
	Least = 50 * time.Millisecond

	napCPU  = 10 * time.Millisecond
	napDisk = 100 * time.Millisecond
	maxKept = 1024 // the newest hiccups are kept
)

// Hiccup is a stretch of time in which a processor or the disk stood still.
type Hiccup struct {
	What     string // "processor 0", "disk"
	From, To election.Instant
}

// Meter notes hiccups until it is stopped. A nil Meter has seen none.
type Meter struct {
	ctx     context.Context
	stop    func()
	running sync.WaitGroup

	mu     sync.Mutex
	seen   []Hiccup
	probes []*probe
}

// probe is one thing that is tried again and again, with a nap before each try.
type probe struct {
	what string
	nap  time.Duration
	due  election.Instant // when the next try should end; Never after giveUp
}

// Start begins to watch the processors that this process may use, and the disk of the directory dir.
// Outside Linux a single thread watches, on whichever processor it runs. With dir "" no disk is watched.
// If no file can be written in dir, err says why, and the Meter works without the disk.
func Start(dir string) (m *Meter, err error) {
	m = &Meter{}
	m.ctx, m.stop = context.WithCancel(context.Background())
	m.watchProcessors()
	if dir == "" {
		return m, nil
	}
	return m, m.watchDisk(dir)
}

func (m *Meter) Stop() {
	if m == nil {
		return
	}
	m.stop()
	m.running.Wait()
}

func (m *Meter) probe(what string, nap time.Duration) *probe {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &probe{what: what, nap: nap, due: boottime.Now().Add(nap)}
	m.probes = append(m.probes, p)
	return p
}

// tried notes that a try ended now, and how late that is.
func (m *Meter) tried(p *probe) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := boottime.Now()
	m.note(Hiccup{p.what, p.due, now})
	p.due = now.Add(p.nap)
}

// giveUp ends the tries of a probe.
func (m *Meter) giveUp(p *probe) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.due = election.Never
}

// note keeps a hiccup if it lasted at least as long as Least. The caller holds the lock.
func (m *Meter) note(h Hiccup) {
	if h.To.Sub(h.From) < Least {
		return
	}
	if len(m.seen) == maxKept {
		m.seen = slices.Delete(m.seen, 0, maxKept/4)
	}
	m.seen = append(m.seen, h)
}

// Between returns the parts of all hiccups that lie between two instants, in the order of
// their beginnings. Hiccups that have not ended are included.
func (m *Meter) Between(from, to election.Instant) []Hiccup {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := slices.Clone(m.seen)
	now := boottime.Now()
	for _, p := range m.probes {
		if p.due != election.Never && now.Sub(p.due) >= Least {
			found = append(found, Hiccup{p.what, p.due, now})
		}
	}
	for i := range found {
		found[i].From, found[i].To = max(found[i].From, from), min(found[i].To, to)
	}
	found = slices.DeleteFunc(found, func(h Hiccup) bool { return h.To <= h.From })
	slices.SortStableFunc(found, func(a, b Hiccup) int { return cmp.Compare(a.From, b.From) })
	return found
}

// Total returns for how long at least one processor or the disk stood still, in total and in the longest
// stretch. Hiccups have to be in the order in which Between returns them.
func Total(hiccups []Hiccup) (total, longest time.Duration) {
	var from, to election.Instant
	for _, h := range hiccups {
		if h.From > to {
			from, to = h.From, h.From
		}
		if h.To > to {
			total += h.To.Sub(to)
			to = h.To
		}
		longest = max(longest, to.Sub(from))
	}
	return total, longest
}

func Describe(hiccups []Hiccup) string {
	var names []string
	for _, h := range hiccups {
		if !slices.Contains(names, h.What) {
			names = append(names, h.What)
		}
	}
	slices.Sort(names)
	total, longest := Total(hiccups)
	return fmt.Sprintf("the machine was paused for %s, %s at most (%s)", total.Round(time.Millisecond), longest.Round(time.Millisecond), strings.Join(names, ", "))
}

// watchDisk writes a byte now and then, and waits until the byte is on the disk.
func (m *Meter) watchDisk(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "hiccup"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("watch the disk: %w", err)
	}
	p := m.probe("disk", napDisk)
	m.running.Go(func() {
		defer f.Close()
		for observe.Sleep(m.ctx, napDisk) == nil {
			if _, err := f.WriteAt([]byte{0}, 0); err == nil {
				_ = f.Sync()
			}
			m.tried(p)
		}
	})
	return nil
}
