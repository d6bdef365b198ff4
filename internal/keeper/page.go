package keeper

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// pageSize is the size of the memory that keeper and life share. It does not depend on the system's page size.
const pageSize = 16 << 10

// magic marks a page and the version of its layout. A later version of doyen may add fields at the end: they
// are 0 if the other side does not know them. Any other change needs another magic.
const magic = 0x646f79656e6b7031 // "doyenkp1"

// The states of a life.
const (
	starting = iota
	running
	stopping   // it ends cleanly, and no life follows
	restarting // it ends so that the next life can start
)

const (
	maxText = 12 << 10 // bytes that a life may report about itself
	maxWhy  = 120
)

// page is what keeper and life share. Each field of 4 or 8 bytes is written in one piece.
type page struct {
	magic uint64

	// Written by the life:
	next      atomic.Int64 // by when it ticks next, CLOCK_BOOTTIME; 0: it has not written that yet
	allowance atomic.Int64 // how much later than next the tick may come, in nanoseconds
	state     atomic.Uint64
	known     struct { // what Known.text returns, written before the life can act; its two paths always fit
		length atomic.Uint64 // written last
		bytes  [maxText]byte
	}

	// Written by the keeper, before it starts the life:
	why struct { // how the former life ended
		length atomic.Uint64
		bytes  [maxWhy]byte
	}

	// Keepers before 0.4.0 read here whether they can turn into the life's program. A 0 makes them go on
	// unchanged.
	_ [4]uint64

	trial struct { // see Life.Try
		can         atomic.Bool   // written by the keeper: it can run trials
		asked       atomic.Uint64 // written by the life: the number of its last request
		done        atomic.Uint64 // written by the keeper after the outcome: the number of that request
		errno, ends atomic.Uint32 // errno: why the program could not be started; if it is 0, ends has the wait status
	}
}

const _ = uint(pageSize - unsafe.Sizeof(page{})) // a page fits into pageSize

func (p *page) tell(s string) {
	if len(s) <= maxText {
		p.known.length.Store(0)
		copy(p.known.bytes[:], s)
		p.known.length.Store(uint64(len(s)))
	}
}

func (p *page) told() string { return string(p.known.bytes[:min(p.known.length.Load(), maxText)]) }

func (p *page) explain(s string) {
	s = s[:min(len(s), maxWhy)]
	copy(p.why.bytes[:], s)
	p.why.length.Store(uint64(len(s)))
}

func (p *page) explained() string { return string(p.why.bytes[:min(p.why.length.Load(), maxWhy)]) }

// Life is the life's side of the page. A nil Life is that of an agent without a keeper, and reports nothing.
type Life struct {
	page   *page // the keeper's page, or if that has another layout, one that only the life uses
	before string
	trials sync.Mutex // only one trial at a time
	tried  int        // descriptor of what a trial has printed
}

const (
	// tickEvery is how often an idle life ticks.
	tickEvery = time.Second
	// startLimit is how long a start may take before the life counts as overdue.
	startLimit = time.Minute
)

// Known is what a life reports to its keeper about itself. An attacker that controls a life can write anything
// there. So the keeper only checks which texts are empty, and takes its paths and arguments from Given. A
// keeper of 0.3.0 gets its paths only from here.
type Known struct {
	Record string // path of the record; empty: none is kept
	Pages  string // directory of the lease pages
	Peer   string // the agent's peer ID; empty: the life has written nothing
	Act    bool   // doyen act, which runs hooks and checks, is needed
}

// text returns the form for a page: the texts, separated by zero bytes. A keeper of 0.3.0 reads pairs of texts
// from the fourth on, so it ignores a last one without a partner.
func (k Known) text() string {
	act := ""
	if k.Act {
		act = "act"
	}
	return strings.Join([]string{k.Record, k.Pages, k.Peer, act}, "\x00")
}

// knownFrom is the reverse of text.
func knownFrom(s string) Known {
	all := strings.Split(s, "\x00")
	if len(all) < 3 {
		return Known{}
	}
	return Known{Record: all[0], Pages: all[1], Peer: all[2], Act: len(all) == 4 && all[3] != ""}
}

// Begins reports to the keeper that the life has begun, and that it catches the signals that ask for an end.
func (l *Life) Begins(now int64) {
	if l != nil {
		l.page.next.Store(now + int64(startLimit))
	}
}

// Why returns how the former life ended, in words; empty: unknown, or no life came before.
func (l *Life) Why() string {
	if l == nil {
		return ""
	}
	return l.before
}

// Tells passes k to the keeper. The life calls it before it acts, and whenever k has changed.
func (l *Life) Tells(k Known) {
	if l != nil {
		l.page.tell(k.text())
		l.calls()
	}
}

// calls makes the keeper check the page now. Another parent ignores this signal by default.
func (l *Life) calls() { _ = syscall.Kill(os.Getppid(), syscall.SIGWINCH) }

// Runs reports to the keeper that the life runs, and how late its ticks may be: three heartbeats, but at most a
// third of the lease.
func (l *Life) Runs(heartbeat, lease time.Duration) {
	if l == nil {
		return
	}
	l.page.allowance.Store(int64(min(3*heartbeat, lease/3)))
	l.page.state.CompareAndSwap(starting, running)
	l.calls()
}

// Ticks reports to the keeper by when the life will tick again, and returns that instant: next, or an earlier
// one.
func (l *Life) Ticks(now, next int64) int64 {
	if l == nil {
		return next
	}
	next = min(next, now+int64(tickEvery))
	l.page.next.Store(next)
	return next
}

// Stops reports to the keeper that the life is ending and that no life follows.
func (l *Life) Stops() {
	if l != nil {
		l.page.state.Store(stopping)
	}
}

// Restarts asks the keeper to start the next life from the program file as it is then. The caller then ends the
// process.
func (l *Life) Restarts() {
	if l != nil {
		l.page.state.Store(restarting)
	}
}
