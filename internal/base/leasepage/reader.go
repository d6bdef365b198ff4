package leasepage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

// Lease is what a page shows while the agent leads.
type Lease struct {
	Term      uint64        // the fencing token
	Deadline  int64         // CLOCK_BOOTTIME, nanoseconds
	Remaining time.Duration // until the deadline, at the moment of the check
}

// Reader checks one page. Several goroutines may use it at once. If a new agent process has made a new page,
// the reader changes to it.
type Reader struct {
	path string
	host HostBoot
	page atomic.Pointer[mapping] // nil once closed

	lookAt atomic.Int64 // until then, follow does not check the path
	mu     sync.Mutex   // held while follow checks the path
}

// lookEvery is the least time between two checks for a new page. A reader makes them only while its page holds
// no lease.
const lookEvery = 10 * time.Millisecond

// Open opens the page of the election that the file is named after. The error is that of opening the file
// (fs.ErrNotExist if the agent keeps no such page), or the reason why the file is not a readable page.
func Open(path string) (*Reader, error) {
	host, err := ThisBoot()
	if err != nil {
		return nil, err
	}
	r := &Reader{path: path, host: host}
	m, err := r.open()
	if err != nil {
		return nil, fmt.Errorf("open lease page %s: %w", path, err)
	}
	r.page.Store(m)
	return r, nil
}

// open maps the file that is now at the path, if it is a page.
func (r *Reader) open() (*mapping, error) {
	f, err := open(r.path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping remains
	m, err := mapFile(f, unix.PROT_READ)
	if err != nil {
		return nil, err
	}
	return m, judge(m.head, filepath.Base(r.path), r.host)
}

// Check returns the lease, and whether the agent is inside it. If so, at one instant during the call the page
// showed the lease and the clock was before its deadline.
func (r *Reader) Check() (Lease, bool) {
	m := r.page.Load()
	if m == nil {
		return Lease{}, false
	}
	if l, err := m.read(); err == nil {
		return l, true
	}
	if m = r.follow(m); m == nil {
		return Lease{}, false
	}
	l, err := m.read()
	return l, err == nil
}

// Valid reports whether the agent is inside its lease, as Check does.
func (r *Reader) Valid() bool {
	_, ok := r.Check()
	return ok
}

// Close makes every later check return false. The memory is freed once no check reads it.
func (r *Reader) Close() error {
	r.page.Store(nil)
	return nil
}

var (
	errNoLease = errors.New("the page holds no lease")
	errBusy    = errors.New("the page changes too fast to be read")
)

// turns bounds how often a reading starts again because the page was written meanwhile. A page is written only
// a few times a second.
const turns = 1000

// read reads the value and then the clock. If the page was written in between, it starts again.
func (m *mapping) read() (l Lease, err error) {
	defer caught(debug.SetPanicOnFault(true), &err)
	defer runtime.KeepAlive(m)
	for range turns {
		sequence := m.sequence()
		v, whole := m.load(sequence)
		now := alarm.Now()
		if m.sequence() != sequence {
			continue
		}
		if !whole || now >= v.deadline {
			return Lease{}, errNoLease
		}
		return Lease{Term: v.term, Deadline: v.deadline, Remaining: time.Duration(v.deadline - now)}, nil
	}
	return Lease{}, errBusy
}

// follow checks, at most once in lookEvery, whether the path leads to another file than the mapped one. If so,
// it maps that file and returns the new mapping; otherwise nil.
func (r *Reader) follow(m *mapping) *mapping {
	now := alarm.Now()
	if now < r.lookAt.Load() || !r.mu.TryLock() {
		return nil
	}
	defer r.mu.Unlock()
	r.lookAt.Store(now + int64(lookEvery))
	info, err := os.Lstat(r.path)
	if err != nil || os.SameFile(info, m.file) {
		return nil
	}
	next, err := r.open()
	if err != nil || !r.page.CompareAndSwap(m, next) {
		return nil
	}
	return next
}
