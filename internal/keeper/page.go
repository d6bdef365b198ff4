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

// pageSize is the size of the memory that keeper and life share, whatever the system's page is.
const pageSize = 16 << 10

// magic marks a page, with its layout's version. A later version of doyen may add fields at
// the end, which are 0 where the other side does not know them; for any other change the magic
// must differ.
const magic = 0x646f79656e6b7031 // "doyenkp1"

// What a life does.
const (
	starting = iota
	running
	stopping   // it ends cleanly, and has no next life
	restarting // it ends for the next life's sake
)

const (
	maxText = 12 << 10 // of what a life tells
	maxWhy  = 120
)

// page is what keeper and life share. Each word is written as a whole.
type page struct {
	magic uint64

	// The life writes:
	next      atomic.Int64 // by when it ticks next, CLOCK_BOOTTIME; 0: it has not written anything
	allowance atomic.Int64 // how much later the tick may come, in nanoseconds
	state     atomic.Uint64
	known     struct { // what Known.text returns, before the life can act; its two paths always fit
		length atomic.Uint64 // written last
		bytes  [maxText]byte
	}

	// The keeper writes, before it starts the life:
	why struct { // how the former life ended
		length atomic.Uint64
		bytes  [maxWhy]byte
	}

	// Keepers of versions before 0.4.0 read here whether they can turn into the life's program. At 0
	// they go on as they are.
	_ [4]uint64

	trial struct { // see Life.Try
		can         atomic.Bool   // the keeper writes: it runs trials
		asked       atomic.Uint64 // the life counts its requests
		done        atomic.Uint64 // the keeper writes: the last request with an outcome, after
		errno, ends atomic.Uint32 // why the program could not be started; else how it ended
	}
}

const _ = uint(pageSize - unsafe.Sizeof(page{})) // it fits

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

// Life is the life's side of the page. A nil Life, of an agent without a keeper, reports nothing.
type Life struct {
	page   *page // if its keeper has another kind of page, that keeper sees nothing of this one
	before string
	trials sync.Mutex // one at a time
	tried  int        // descriptor of what a trial has printed
}

const (
	// tickEvery is how often an idle life ticks.
	tickEvery = time.Second
	// startLimit is how long a start may take.
	startLimit = time.Minute
)

// Known is what a life tells its keeper of itself. A life that an attacker controls can tell
// anything, so the keeper only asks whether a text is there: its own paths and arguments are in Given.
// A keeper of 0.3.0 has no others than these paths.
type Known struct {
	Record string // path of the record; empty: none is kept
	Pages  string // directory of the lease pages
	Peer   string // the agent's peer ID; empty: nothing is known
	Act    bool   // the process that runs hooks and checks is needed
}

// text returns it as a page has it: texts with a zero byte between them. A keeper of 0.3.0 takes
// texts in pairs from the fourth on, and so ignores that one.
func (k Known) text() string {
	act := ""
	if k.Act {
		act = "act"
	}
	return strings.Join([]string{k.Record, k.Pages, k.Peer, act}, "\x00")
}

// knownFrom reads what text has returned.
func knownFrom(s string) Known {
	all := strings.Split(s, "\x00")
	if len(all) < 3 {
		return Known{}
	}
	return Known{Record: all[0], Pages: all[1], Peer: all[2], Act: len(all) == 4 && all[3] != ""}
}

// Begins tells the keeper that the life has begun and catches the signals that ask for an end.
func (l *Life) Begins(now int64) {
	if l != nil {
		l.page.next.Store(now + int64(startLimit))
	}
}

// Why returns how the former life ended, in words; empty: it is not known, or there was none.
func (l *Life) Why() string {
	if l == nil {
		return ""
	}
	return l.before
}

// Tells tells the keeper what to know of this life, before it acts, and whenever that changes.
func (l *Life) Tells(k Known) {
	if l != nil {
		l.page.tell(k.text())
		l.calls()
	}
}

// calls has the keeper look at the page now. The signal does nothing by default.
func (l *Life) calls() { _ = syscall.Kill(os.Getppid(), syscall.SIGWINCH) }

// Runs tells the keeper that the life has started, and how late its ticks may be: three
// heartbeats, but no more than a third of the lease.
func (l *Life) Runs(heartbeat, lease time.Duration) {
	if l == nil {
		return
	}
	l.page.allowance.Store(int64(min(3*heartbeat, lease/3)))
	l.page.state.CompareAndSwap(starting, running)
	l.calls()
}

// Ticks tells the keeper by when the life will tick again, and returns that instant: next, or
// an earlier one.
func (l *Life) Ticks(now, next int64) int64 {
	if l == nil {
		return next
	}
	next = min(next, now+int64(tickEvery))
	l.page.next.Store(next)
	return next
}

// Stops tells the keeper that the life ends and has no next one.
func (l *Life) Stops() {
	if l != nil {
		l.page.state.Store(stopping)
	}
}

// Restarts tells the keeper to start the next life from what the program file is by then. The
// caller ends the process.
func (l *Life) Restarts() {
	if l != nil {
		l.page.state.Store(restarting)
	}
}
