package soak

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"slices"
	"sync"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/history"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	maxActs   = 512  // stretches of acting that are remembered
	maxNewest = 2000 // operations that are remembered
)

// Register is the shared counter that only the leading program should change. It takes
// operations whose token is at least as high as the highest it has seen. An addition that it takes
// has to be to its newest value. That is more than a history that some order explains: the order is
// the one in which it has taken the operations. Its methods may be called by several goroutines at once.
type Register struct {
	mu      sync.Mutex
	counter history.Register
	seen    Seen
	lastAdd election.Instant
}

// Seen is what a register has seen.
type Seen struct {
	Operations, Refused int                   // refused: for an old token
	Acts                []observe.ProgramSpan // when programs acted, as far as it is remembered
	Newest              []actor.Ask           // the newest operations that it took
	Violated            string                // the first addition that was not to the newest value
}

// Serve answers programs until ctx ends. It closes the listener.
func (r *Register) Serve(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var running sync.WaitGroup
	defer running.Wait()
	server := rpc.NewServer()
	_ = server.RegisterName(actor.Register, r) // it has the method Do
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("serve the register: %w", err)
		}
		running.Go(func() {
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			server.ServeConn(conn)
		})
	}
}

// Do carries an operation out.
func (r *Register) Do(a actor.Ask, answer *actor.Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.act(a)
	s := &r.seen
	if !r.counter.Admit(election.Term(a.Token)) {
		s.Refused++
		return nil
	}
	if a.Add && a.Value != r.counter.Value+1 && s.Violated == "" {
		s.Violated = fmt.Sprintf("the counter: %s writes %d under token %d, and it was %d", a.Program, a.Value, a.Token, r.counter.Value)
	}
	if a.Add {
		r.counter.Value, r.lastAdd = a.Value, boottime.Now()
	}
	s.Operations++
	s.Newest = append(room(s.Newest, maxNewest), a)
	*answer = actor.Answer{Done: true, Value: r.counter.Value}
	return nil
}

// room returns the list without its oldest quarter, if it has no room for one more.
func room[T any](list []T, most int) []T {
	if len(list) == most {
		return slices.Delete(list, 0, most/4)
	}
	return list
}

// act remembers that a program knew, at an instant, that it leads.
func (r *Register) act(a actor.Ask) {
	at, acts := election.Instant(a.At), r.seen.Acts
	for i := range slices.Backward(acts) {
		if s := &acts[i]; s.Program == a.Program && s.Term == a.Token {
			s.From, s.To = min(s.From, at), max(s.To, at)
			return
		}
	}
	r.seen.Acts = append(room(acts, maxActs), observe.ProgramSpan{Program: a.Program, Host: a.Host, Election: Election, Term: a.Token, From: at, To: at})
}

// Seen returns what it has seen until now.
func (r *Register) Seen() Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen
	s.Acts, s.Newest = slices.Clone(s.Acts), slices.Clone(s.Newest)
	return s
}

// LastAdd returns when a program last added to the counter.
func (r *Register) LastAdd() election.Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastAdd
}
