// Package watch delivers changes of leadership to followers.
//
// It guarantees that a follower gets the changes of its election in order, each once, or
// learns how many it missed. Publishing never waits for a follower. A change is encoded
// once, however many follow. The changes that wait for a follower, and those kept for followers
// that return, are bounded; its caller bounds how many follow.
//
// It keeps no changes beyond this process. Indexes start at the time of the process's start.
// So indexes of an earlier process run are recognised, as long as the wall clock did not go back
// in between: they are too old, except in a process that goes on from that run (GoesOn).
package watch

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/doyen-election/doyen/api"
)

const (
	maxKept    = 1024 // changes, over all elections
	maxWaiting = 128  // changes, per follower
)

// ErrClosed refuses a follower: the agent stops.
var ErrClosed = errors.New("follow changes: the agent stops")

// Change is a change that was published. It is never altered, since all followers share it.
type Change struct {
	api.Change

	encode sync.Once
	line   []byte
	err    error
}

// Line returns the change as a line of JSON, newline included. The first caller encodes it,
// and nobody may alter it.
func (c *Change) Line() ([]byte, error) {
	c.encode.Do(func() {
		c.line, c.err = json.Marshal(&c.Change)
		c.line = append(c.line, '\n')
	})
	return c.line, c.err
}

// Hub is where changes are published and followed.
type Hub struct {
	newest sync.Map      // by election: the index of its newest change in kept
	floor  atomic.Uint64 // changes of all other elections have this index or a lower one

	mu        sync.Mutex
	index     uint64
	goesOn    uint64                            // lower indexes are of the run before, and nothing is lost since; 0: none are
	kept      []*Change                         // oldest first
	followers map[string]map[*Follower]struct{} // by election
	closed    bool
}

// NewHub returns a hub whose first change has the index after the given one.
func NewHub(index uint64) *Hub {
	h := &Hub{index: index, followers: map[string]map[*Follower]struct{}{}}
	h.floor.Store(index)
	return h
}

// GoesOn has a follower that resumes from the process run before get all changes of this one. The
// first of them has to say what is the same.
func (h *Hub) GoesOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.goesOn = h.index
}

// Index returns the index of the newest change of the election. If that is not known any more,
// or there was none, the index returned is at least as high as those of all its changes. Index
// takes no lock.
func (h *Hub) Index(election string) uint64 {
	if i, ok := h.newest.Load(election); ok {
		return i.(uint64)
	}
	return h.floor.Load()
}

// Publish numbers the change and gives it to the followers of its election.
func (h *Hub) Publish(change api.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index++
	c := &Change{Change: change}
	c.Index = h.index
	h.newest.Store(c.Election, c.Index)
	if len(h.kept) == maxKept {
		h.forget(h.kept[0])
		copy(h.kept, h.kept[1:])
		h.kept = h.kept[:maxKept-1]
	}
	h.kept = append(h.kept, c)
	for f := range h.followers[c.Election] {
		f.offer(c)
	}
}

// forget records that a change is not kept any more.
func (h *Hub) forget(c *Change) {
	h.floor.Store(c.Index)
	h.newest.CompareAndDelete(c.Election, c.Index)
}

// Follow starts to follow an election. With resume, the changes after that index come first;
// if they are not known any more, Take reports at once that they are lost. Without resume,
// only changes from now on come.
func (h *Hub) Follow(election string, after uint64, resume bool) (*Follower, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	f := &Follower{hub: h, election: election, ready: make(chan struct{}, 1)}
	if h.followers[election] == nil {
		h.followers[election] = map[*Follower]struct{}{}
	}
	h.followers[election][f] = struct{}{}
	if resume {
		h.replay(f, after)
	}
	return f, nil
}

// replay gives a follower the changes after the index. If that index was never given out here,
// or lies before what is kept, the changes are not known.
func (h *Hub) replay(f *Follower, after uint64) {
	after = max(after, h.goesOn)
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
	for _, followers := range h.followers {
		for f := range followers {
			close(f.ready)
		}
	}
	clear(h.followers)
}

// Follower follows one election. Its methods are for one goroutine.
type Follower struct {
	hub      *Hub
	election string
	ready    chan struct{} // closed when the hub is

	// Guarded by the hub.
	waiting []*Change
	missed  uint64
}

// offer is called with the hub locked.
func (f *Follower) offer(c *Change) {
	if f.missed > 0 || len(f.waiting) == maxWaiting {
		f.lag(1)
		return
	}
	f.waiting = append(f.waiting, c)
	f.signal()
}

// lag counts n changes as lost, and those that wait as well: the fresh snapshot that the
// follower gets replaces them all.
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

// Ready has an element when there is something to take, and is closed when nothing more will
// come.
func (f *Follower) Ready() <-chan struct{} { return f.ready }

// Take returns what waits, and how many changes were lost. If some were, a snapshot made after
// this call, with this index, replaces them.
func (f *Follower) Take() (changes []*Change, missed, index uint64) {
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
	delete(f.hub.followers[f.election], f)
	if len(f.hub.followers[f.election]) == 0 {
		delete(f.hub.followers, f.election)
	}
}
