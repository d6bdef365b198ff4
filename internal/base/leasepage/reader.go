package leasepage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
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
	path  string
	host  HostBoot
	clock *clock
	page  atomic.Pointer[mapping] // nil once closed

	lookAt atomic.Int64 // no look at the path before then
	mu     sync.Mutex   // held during such a look
}

// mapping is one file, mapped for as long as a check may read it.
type mapping struct {
	words *words
	sum   uint64
	info  os.FileInfo
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
	r := &Reader{path: path, host: host, clock: newClock()}
	m, err := r.open()
	if err != nil {
		return nil, fmt.Errorf("open lease page %s: %w", path, err)
	}
	r.page.Store(m)
	return r, nil
}

// open maps the file that is at the path now, if it is a page.
func (r *Reader) open() (*mapping, error) {
	f, info, err := open(r.path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	if info.Size() < Size {
		return nil, errShort
	}
	w, err := mapWords(f, unix.PROT_READ)
	if err != nil {
		return nil, err
	}
	m := &mapping{words: w, info: info}
	runtime.AddCleanup(m, unmap, w)
	return m, m.recognise(filepath.Base(r.path), r.host)
}

// recognise reads the header.
func (m *mapping) recognise(election string, host HostBoot) (err error) {
	defer Caught(Guard(), &err)
	head := *(*[headerSize]byte)(unsafe.Pointer(m.words))
	m.sum = headerSum(head)
	return judge(head, election, host)
}

// Check returns the lease, and whether the agent is inside it: at one instant during the
// call, the page showed the lease and the clock was before its deadline.
func (r *Reader) Check() (Lease, bool) {
	m := r.page.Load()
	if m == nil {
		return Lease{}, false
	}
	if l, err := m.read(r.clock); err == nil {
		return l, true
	}
	if m = r.follow(m); m == nil {
		return Lease{}, false
	}
	l, err := m.read(r.clock)
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
func (m *mapping) read(c *clock) (l Lease, err error) {
	defer Caught(Guard(), &err)
	defer runtime.KeepAlive(m)
	for range turns {
		sequence := atomic.LoadUint64(&m.words[wordSequence])
		at := place(sequence)
		v := value{atomic.LoadUint64(&m.words[at]), int64(atomic.LoadUint64(&m.words[at+1]))}
		sum := atomic.LoadUint64(&m.words[at+2])
		now := c.now()
		if atomic.LoadUint64(&m.words[wordSequence]) != sequence {
			continue
		}
		if sequence == 0 || now >= v.deadline || sum != seal(m.sum, sequence, v) {
			return Lease{}, errNoLease
		}
		return Lease{Term: v.term, Deadline: v.deadline, Remaining: time.Duration(v.deadline - now)}, nil
	}
	return Lease{}, errBusy
}

// follow looks, now and then, whether the path leads to another file than the one mapped. If
// so, it maps and returns that file, else nil.
func (r *Reader) follow(m *mapping) *mapping {
	now := r.clock.now()
	if now < r.lookAt.Load() || !r.mu.TryLock() {
		return nil
	}
	defer r.mu.Unlock()
	r.lookAt.Store(now + int64(lookEvery))
	info, err := os.Lstat(r.path)
	if err != nil || os.SameFile(info, m.info) {
		return nil
	}
	next, err := r.open()
	if err != nil || !r.page.CompareAndSwap(m, next) {
		return nil
	}
	return next
}
