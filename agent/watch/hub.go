// Package watch delivers changes of leadership to followers.
//
// It guarantees that a follower gets the changes of its election in order, each once, or learns how
// many it missed. Publishing never waits for a follower. A change is encoded once for all
// followers. The changes that wait for a follower are bounded, and so are those kept for followers
// that return. The caller has to bound how many followers there are.
//
// It keeps changes only in this process. The first index is made from the time when the process started.
// So an index of an earlier process run is recognised as too old, unless the wall clock went back in
// between. A process that goes on from the earlier run accepts such an index (GoesOn).
package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/logger"
	"github.com/doyen-election/doyen/internal/base/offer"
)

const (
	maxKept    = 1024 // how many changes are kept, over all elections
	maxWaiting = 128  // how many changes may wait for one follower
)

// ErrClosed is the error of Follow after Close: the agent stops.
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
		c.line = append(logger.Showable(c.line), '\n')
	})
	return c.line, c.err
}

// Hub is where changes are published and followed.
type Hub struct {
	mu        sync.Mutex
	index     uint64
	newest    map[string]uint64                 // by election: the index of its newest change in kept
	goesOn    uint64                            // a follower may resume from any lower index, which is one of the earlier run; 0: it may not
	kept      []*Change                         // oldest first
	followers map[string]map[*Follower]struct{} // by election
	closed    bool
}

// NewHub returns a hub whose first change has the index after the given one.
func NewHub(index uint64) *Hub {
	return &Hub{index: index, newest: map[string]uint64{}, followers: map[string]map[*Follower]struct{}{}}
}

// GoesOn accepts followers that resume from an index of the earlier process run: they get all changes of
// this run. The caller's first change has to report what has not changed since the earlier run.
func (h *Hub) GoesOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.goesOn = h.index
}

// Index returns the index of the election's newest change. If that index is not known, the result is
// the index of a later change of any election, so that Follow from there omits no change.
func (h *Hub) Index(election string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return cmp.Or(h.newest[election], h.forgotten())
}

// forgotten is the index of the newest change that is not kept any more.
func (h *Hub) forgotten() uint64 { return h.index - uint64(len(h.kept)) }

// Publish numbers the change and gives it to the followers of its election.
func (h *Hub) Publish(change api.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index++
	c := &Change{Change: change}
	c.Index = h.index
	h.newest[c.Election] = c.Index
	h.kept = append(h.kept, c)
	if len(h.kept) > maxKept {
		if oldest := h.kept[0]; h.newest[oldest.Election] == oldest.Index {
			delete(h.newest, oldest.Election)
		}
		h.kept = slices.Delete(h.kept, 0, 1)
	}
	for f := range h.followers[c.Election] {
		f.offer(c)
	}
}

// Show gives the followers of an election a line about its present state. It is not numbered and not kept: a
// follower that returns gets a snapshot.
func (h *Hub) Show(line api.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &Change{Change: line}
	for f := range h.followers[line.Election] {
		f.offer(c)
	}
}

// Followed returns the elections that have followers, in no order.
func (h *Hub) Followed() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.followers))
}

// Follow starts to follow an election. The changes after the given index come first. If they are not
// kept any more, Take reports at once that they are lost. With index 0, only changes from now on come.
func (h *Hub) Follow(election string, after uint64) (*Follower, error) {
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
	if after > 0 {
		h.replay(f, after)
	}
	return f, nil
}

// replay gives a follower the changes after the index. If this hub never gave out that index, or has
// dropped some changes after that index, they count as lost.
func (h *Hub) replay(f *Follower, after uint64) {
	after = max(after, h.goesOn)
	if after > h.index || after < h.forgotten() {
		f.lag()
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
	ready    chan struct{} // closed when the hub is closed

	// The hub's lock guards these.
	waiting []*Change
	missed  uint64
}

// offer gives the follower a change. It is called with the hub locked.
func (f *Follower) offer(c *Change) {
	if f.missed > 0 || len(f.waiting) == maxWaiting {
		f.lag()
		return
	}
	f.waiting = append(f.waiting, c)
	offer.To(f.ready, struct{}{})
}

// lag counts a change as lost, and also the changes that wait: the follower gets a fresh snapshot,
// which replaces all of these.
func (f *Follower) lag() {
	f.missed += uint64(len(f.waiting)) + 1
	f.waiting = nil
	offer.To(f.ready, struct{}{})
}

// Wait returns true once there is something to take, and false if nothing more will come or ctx has ended.
func (f *Follower) Wait(ctx context.Context) (more bool) {
	select {
	case _, more = <-f.ready:
	case <-ctx.Done():
	}
	return more
}

// Take returns the changes that wait, how many were lost, and the index of the election's newest change. If
// some were lost, the caller replaces them by a snapshot made after this call, with that index.
func (f *Follower) Take() (changes []*Change, missed, index uint64) {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	changes, missed = f.waiting, f.missed
	f.waiting, f.missed = nil, 0
	return changes, missed, cmp.Or(f.hub.newest[f.election], f.hub.forgotten())
}

// Close ends the following: the follower gets no more changes.
func (f *Follower) Close() {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	delete(f.hub.followers[f.election], f)
	if len(f.hub.followers[f.election]) == 0 {
		delete(f.hub.followers, f.election)
	}
}
