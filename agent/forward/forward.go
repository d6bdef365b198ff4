// Package forward makes calls of the socket API at other agents, and has theirs answered.
//
// It guarantees that a call is answered, or fails by its caller's deadline; that an answer
// counts only from the agent that was asked; and that other agents occupy a bounded number of
// goroutines. It does not judge who may ask for what: that does package serve. A call whose
// answer is lost may have been carried out.
package forward

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
)

const (
	perAgent = 4  // calls of one agent that are answered at a time
	overall  = 16 // calls of all agents
	// patience bounds how long an answer takes: the longest call changes the voters.
	patience = time.Minute
)

// ErrNotSent is a call that was not made.
var ErrNotSent = errors.New("the call can't be sent: this agent is not connected to that one, or that one's version does not know the call")

// Busy is the status that an agent answers with when it has too many calls.
const Busy = 503

// Desk makes and answers calls. Its methods may be called from any goroutine.
type Desk struct {
	send  func(to election.PeerID, m election.Message) bool
	serve func(ctx context.Context, from election.PeerID, c election.Call) election.CallAnswer
	calls *door.Places[election.PeerID]

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]waiter
}

type waiter struct {
	asked  election.PeerID
	answer chan election.CallAnswer // has room for the answer
}

// New returns a desk. send queues a message, or reports that it
// can't be sent. serve answers a call, in a separate goroutine.
func New(send func(election.PeerID, election.Message) bool,
	serve func(context.Context, election.PeerID, election.Call) election.CallAnswer,
) *Desk {
	return &Desk{send: send, serve: serve, calls: door.NewPlaces[election.PeerID](overall, 0), waiting: map[uint64]waiter{}}
}

// Call makes a call at another agent and waits for the answer. The call's ID is chosen here.
func (d *Desk) Call(ctx context.Context, to election.PeerID, c election.Call) (election.CallAnswer, error) {
	w := waiter{asked: to, answer: make(chan election.CallAnswer, 1)}
	d.mu.Lock()
	d.last++
	c.ID = d.last
	d.waiting[c.ID] = w
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiting, c.ID)
	}()
	if !d.send(to, c) {
		return election.CallAnswer{}, ErrNotSent
	}
	select {
	case a := <-w.answer:
		return a, nil
	case <-ctx.Done():
		return election.CallAnswer{}, fmt.Errorf("no answer came: %w", context.Cause(ctx))
	}
}

// Received handles a message that is a call or an answer, and reports whether it is one. It
// never blocks.
func (d *Desk) Received(from election.PeerID, m election.Message) bool {
	switch m := m.(type) {
	case election.Call:
		if d.calls.Enter(from, 1, perAgent, false) != nil {
			d.send(from, election.CallAnswer{ID: m.ID, Status: Busy})
			return true
		}
		go func() {
			defer d.calls.Leave(from, 1)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			a := d.serve(ctx, from, m)
			a.ID = m.ID
			d.send(from, a)
		}()
		return true
	case election.CallAnswer:
		d.mu.Lock()
		defer d.mu.Unlock()
		if w, ok := d.waiting[m.ID]; ok && w.asked == from {
			delete(d.waiting, m.ID) // so a second answer finds nobody
			w.answer <- m
		}
		return true
	}
	return false
}
