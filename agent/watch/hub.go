// Package watch hands changes of leadership to whoever follows them.
//
// It guarantees that a follower sees the changes of its election in order, each
// once, or is told how many it missed; that publishing never waits for a
// follower; and that followers, what they have waiting and what is kept for
// those who come back are all bounded.
//
// It does not keep changes beyond this process. Indexes begin at the process's
// start time, so those of a former life are recognised as too old, as long as
// the wall clock did not go back in between.
package watch

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/doyen-election/doyen/api"
)

const (
	maxKept      = 1024 // changes, over all elections
	maxWaiting   = 128  // changes, per follower
	maxFollowers = 256
)

var (
	// ErrFull says that there are as many followers as there may be.
	ErrFull = errors.New("follow changes: too many followers")
	// ErrClosed says that the agent stops.
	ErrClosed = errors.New("follow changes: the agent stops")
)

// Hub is where changes are published and followed.
type Hub struct {
	newest atomic.Pointer[map[string]uint64] // by election; replaced, never changed
	first  uint64

	mu        sync.Mutex
	index     uint64
	kept      []api.Change // oldest first
	followers map[*Follower]struct{}
	closed    bool
}

// NewHub returns a hub whose first change has the index after the given one.
func NewHub(index uint64) *Hub {
	h := &Hub{first: index, index: index, followers: map[*Follower]struct{}{}}
	h.newest.Store(&map[string]uint64{})
	return h
}

// Index returns the index of the newest change of the election, or the one
// before the hub's first. It takes no lock.
func (h *Hub) Index(election string) uint64 {
	if i, ok := (*h.newest.Load())[election]; ok {
		return i
	}
	return h.first
}

// Publish numbers the change and hands it to its followers.
func (h *Hub) Publish(c api.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index++
	c.Index = h.index
	newest := maps.Clone(*h.newest.Load())
	newest[c.Election] = c.Index
	h.newest.Store(&newest)
	if len(h.kept) == maxKept {
		copy(h.kept, h.kept[1:])
		h.kept = h.kept[:maxKept-1]
	}
	h.kept = append(h.kept, c)
	for f := range h.followers {
		if f.election == c.Election {
			f.offer(c)
		}
	}
}

// Follow begins to follow an election. With resume, changes after that index
// come first, or word that they are lost (Take tells at once which); without,
// only what comes from now on.
func (h *Hub) Follow(election string, after uint64, resume bool) (*Follower, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, ErrClosed
	case len(h.followers) >= maxFollowers:
		return nil, ErrFull
	}
	f := &Follower{hub: h, election: election, ready: make(chan struct{}, 1)}
	if resume {
		h.replay(f, after)
	}
	h.followers[f] = struct{}{}
	return f, nil
}

// replay fills in what followed the index. An index that was never given out
// here, or lies before what is kept, has changes after it that nobody can tell.
func (h *Hub) replay(f *Follower, after uint64) {
	oldest := h.index + 1 - uint64(len(h.kept)) // of what is kept
	if after > h.index || after+1 < oldest {
		f.lag(1)
		return
	}
	for _, c := range h.kept {
		if c.Index > after && c.Election == f.election {
			f.offer(c)
		}
	}
}

// Close ends every follower.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	for f := range h.followers {
		close(f.ready)
	}
	clear(h.followers)
}

// Follower is one that follows one election. Its methods are for one goroutine.
type Follower struct {
	hub      *Hub
	election string
	ready    chan struct{} // closed when the hub is

	// Guarded by the hub.
	waiting []api.Change
	missed  uint64
}

// offer is called with the hub locked.
func (f *Follower) offer(c api.Change) {
	if f.missed > 0 || len(f.waiting) == maxWaiting {
		f.lag(1)
		return
	}
	f.waiting = append(f.waiting, c)
	f.signal()
}

// lag counts a change as lost, and those that wait with it: the fresh snapshot
// that the follower gets stands for them all.
func (f *Follower) lag(n uint64) {
	f.missed += uint64(len(f.waiting)) + n
	f.waiting = nil
	f.signal()
}

func (f *Follower) signal() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// Ready has an element when there is something to take, and is closed when
// there will be nothing more.
func (f *Follower) Ready() <-chan struct{} { return f.ready }

// Take returns what waits, and how many changes were lost; if some were, a
// picture taken after this call, together with index, stands for them.
func (f *Follower) Take() (changes []api.Change, missed, index uint64) {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	changes, missed = f.waiting, f.missed
	f.waiting, f.missed = nil, 0
	return changes, missed, f.hub.Index(f.election)
}

// Close ends the following.
func (f *Follower) Close() {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	delete(f.hub.followers, f)
}
