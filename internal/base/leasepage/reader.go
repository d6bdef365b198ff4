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

// Reader checks one page. Several goroutines may use it at once. When an agent that was
// started again has made a new page, the reader goes over to that.
type Reader struct {
	path string
	host HostBoot
	page atomic.Pointer[mapping] // nil once closed

	lookAt atomic.Int64 // no look at the path before then
	mu     sync.Mutex   // held during such a look
}

// lookEvery is the least time between two looks for a new page, by a reader whose page holds
// no lease.
const lookEvery = 10 * time.Millisecond

// Open opens the page of the election that the file is named after. Errors are those of
// opening a file (fs.ErrNotExist if the agent keeps no such page), or why the file is not
// a page that can be read.
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

// open maps the file that is at the path now, if it is a page.
func (r *Reader) open() (*mapping, error) {
	f, err := open(r.path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	m, err := mapFile(f, unix.PROT_READ)
	if err != nil {
		return nil, err
	}
	return m, judge(m.head, filepath.Base(r.path), r.host)
}

// Check returns the lease, and whether the agent is inside it: at one instant during the
// call, the page showed the lease and the clock was before its deadline.
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

// Close ends the reading: every later check returns false. The memory is given back once
// no check reads it.
func (r *Reader) Close() error {
	r.page.Store(nil)
	return nil
}

var (
	errNoLease = errors.New("the page holds no lease")
	errBusy    = errors.New("the page changes too fast to be read")
)

// turns bounds how often a reading begins again because the page was written meanwhile. The
// page is written a few times a second.
const turns = 1000

// read takes a value and then the clock's reading. If the page was written in between, it
// begins again.
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

// follow looks, now and then, whether the path leads to another file than the one mapped. If
// so, it maps and returns that file, else nil.
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
