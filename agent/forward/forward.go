// Package forward makes calls of the socket API at other agents, and answers their calls.
//
// It guarantees that a call is answered or fails by its caller's deadline. An answer counts only from the
// agent that was asked. Other agents occupy a bounded number of goroutines. Agents that do not vote leave
// the voters' places free. Package serve decides which agent may ask for what. A call whose answer is lost
// may have been carried out.
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
	perVoter = 4  // calls of one voter that are answered at the same time
	ofVoters = 14 // calls of all voters together
	ofOthers = 2  // calls of all other agents together, one of each agent; anyone who has the cluster key can run an agent
	// patience bounds how long an answer may take. A change of the voters takes longest.
	patience = time.Minute
)

// ErrNotSent is the error of a call that was not sent, and so was not carried out.
var ErrNotSent = errors.New("the call can't be sent: this agent is not connected to that one, or that one's version does not know the call")

// Busy is the status that an agent answers with when it has too many calls.
const Busy = 503

// Desk makes and answers calls. Its methods may be called from any goroutine.
type Desk struct {
	send  func(to election.PeerID, m election.Message) bool
	serve func(ctx context.Context, from election.PeerID, c election.Call) election.CallAnswer
	votes func(election.PeerID) bool

	voters, others *door.Places[election.PeerID]

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]waiter
}

type waiter struct {
	asked  election.PeerID
	answer chan election.CallAnswer // has room for the answer, so that Received never blocks
}

// New returns a desk. send queues a message, or reports that it can't be sent. serve answers a
// call, in a separate goroutine. votes reports whether an agent is a voter.
func New(send func(election.PeerID, election.Message) bool,
	serve func(context.Context, election.PeerID, election.Call) election.CallAnswer, votes func(election.PeerID) bool,
) *Desk {
	return &Desk{send: send, serve: serve, votes: votes, waiting: map[uint64]waiter{},
		voters: door.NewPlaces[election.PeerID](ofVoters, 0), others: door.NewPlaces[election.PeerID](ofOthers, 0)}
}

// Call makes a call at another agent and waits for the answer. It sets c.ID itself.
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

// Received handles a message if it is a call or an answer, and reports whether it is. Received
// never blocks.
func (d *Desk) Received(from election.PeerID, m election.Message) bool {
	switch m := m.(type) {
	case election.Call:
		places, share := d.others, 1
		if d.votes(from) {
			places, share = d.voters, perVoter
		}
		if places.Enter(from, 1, share, false) != nil {
			d.send(from, election.CallAnswer{ID: m.ID, Status: Busy})
			return true
		}
		go func() {
			defer places.Leave(from, 1)
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
			delete(d.waiting, m.ID) // so a second answer has no effect
			w.answer <- m
		}
		return true
	}
	return false
}
