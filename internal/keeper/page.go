package keeper

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// pageSize is the size of the memory that keeper and life share, whatever the system's page is.
const pageSize = 4096

// magic marks a page, with its layout's version.
const magic = 0x646f79656e6b7031 // "doyenkp1"

// What a life does.
const (
	starting = iota
	running
	stopping   // it ends cleanly, and has no next life
	restarting // it ends for the next life's sake
)

// maxText bounds each text of a page.
const maxText = 990

// page is what keeper and life share. The life writes it, each word as a whole.
type page struct {
	magic     uint64
	next      atomic.Int64 // by when the life ticks next, CLOCK_BOOTTIME; 0: it has not written anything
	allowance atomic.Int64 // how much later the tick may come, in nanoseconds
	state     atomic.Uint64

	// Written once, before the life is running.
	record, pages, peer text
}

type text struct {
	length uint64
	bytes  [maxText]byte
}

const _ = uint(pageSize - unsafe.Sizeof(page{})) // it fits

func (t *text) set(s string) {
	if len(s) <= maxText {
		t.length = uint64(copy(t.bytes[:], s))
	}
}

func (t *text) String() string { return string(t.bytes[:min(t.length, maxText)]) }

// Life is the life's side of the page. A nil Life, of an agent without a keeper, reports nothing.
type Life struct{ page *page }

const (
	// tickEvery is how often an idle life ticks.
	tickEvery = time.Second
	// startLimit is how long a start may take.
	startLimit = time.Minute
)

// Known is what the keeper needs to know when no next life can be started.
type Known struct {
	Record string // path of the record; empty: none is kept
	Pages  string // directory of the lease pages
	Peer   string // the agent's peer ID
}

// Runs tells the keeper that the life has started, what to know of the life, and how late its
// ticks may be: three heartbeats, but no more than a third of the lease.
func (l *Life) Runs(k Known, heartbeat, lease time.Duration) {
	if l == nil {
		return
	}
	l.page.record.set(k.Record)
	l.page.pages.set(k.Pages)
	l.page.peer.set(k.Peer)
	l.page.allowance.Store(int64(min(3*heartbeat, lease/3)))
	l.page.state.CompareAndSwap(starting, running)
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
// caller ends the process. Restarts returns false if there is no keeper.
func (l *Life) Restarts() bool {
	if l != nil {
		l.page.state.Store(restarting)
	}
	return l != nil
}
