package soak

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/history"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	// window is how many operations are judged together; Check may judge fewer. A window ends only
	// when no operation is under way, so that the next window begins with a known value.
	window = 2000
	// judging bounds how long the judgement of one window may take.
	judging = 20 * time.Second
	// maxActs is how many stretches of acting are remembered.
	maxActs = 512
)

// Register is the shared counter that only the leading program should change. It takes
// operations whose token is at least as high as the highest it has seen. Its methods may be
// called by several goroutines at once.
type Register struct {
	mu       sync.Mutex
	counter  history.Register
	first    int // the counter's value at the beginning of the window
	ops      []porcupine.Operation
	open     map[int]*porcupine.Operation // operations under way, by program
	names    []string                     // of programs
	acts     []observe.ProgramSpan
	lastAdd  election.Instant
	counts   Counts
	violated string
}

// Counts counts the operations of a register.
type Counts struct {
	Operations int // done
	Refused    int // for an old token
	Unknown    int // done, but the program never received the answer
	Windows    int // windows of the history that were judged
	Undecided  int // windows that took too long to judge
}

// NewRegister returns a counter at 0.
func NewRegister() *Register { return &Register{open: map[int]*porcupine.Operation{}} }

// Serve answers programs until ctx ends. It closes the listener.
func (r *Register) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("serve the register: %w", err)
		}
		running.Go(func() {
			d := &desk{register: r, client: -1}
			server := rpc.NewServer()
			_ = server.RegisterName("Desk", d) // it has methods
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			server.ServeConn(conn)
			r.leave(d.client) // the program can send no further request
		})
	}
}

// desk has the methods that one program calls over its connection.
type desk struct {
	register *Register
	client   int // the program's index in Register.names; -1 before it has called Enter
	host     string
}

func (d *desk) Enter(who actor.Who, _ *actor.Answer) error {
	r := d.register
	r.mu.Lock()
	defer r.mu.Unlock()
	d.host, d.client = who.Host, slices.Index(r.names, who.Program)
	if d.client < 0 {
		d.client = len(r.names)
		r.names = append(r.names, who.Program)
	}
	return nil
}

func (d *desk) Do(a actor.Ask, answer *actor.Answer) error {
	if d.client < 0 {
		return errors.New("who asks?")
	}
	*answer = d.register.do(d.client, d.host, a)
	return nil
}

// Returned ends the program's operation: the program has received the answer.
func (d *desk) Returned(at int64, _ *actor.Answer) error {
	r := d.register
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.open[d.client]; o != nil {
		o.Return = at
		r.finish(d.client)
	}
	return nil
}

// leave ends the operation that a program had under way. The program can't receive the result any more.
func (r *Register) leave(client int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.open[client]; o != nil {
		o.Output, o.Return = history.Result{}, int64(boottime.Now())
		r.counts.Unknown++
		r.finish(client)
	}
}

// do carries an operation out.
func (r *Register) do(client int, host string, a actor.Ask) actor.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.act(r.names[client], host, a)
	if !r.counter.Admit(election.Term(a.Token)) {
		r.counts.Refused++
		return actor.Answer{}
	}
	o := &porcupine.Operation{ClientId: client, Input: history.Read, Call: a.Call}
	if a.Add {
		o.Input, r.counter.Value, r.lastAdd = history.Add, a.Value, boottime.Now()
	}
	o.Output = history.Result{Known: true, Value: r.counter.Value}
	r.open[client] = o
	r.counts.Operations++
	return actor.Answer{Done: true, Value: r.counter.Value}
}

// finish moves an operation into the history, and judges the history if it fills a window.
func (r *Register) finish(client int) {
	r.ops = append(r.ops, *r.open[client])
	delete(r.open, client)
	if len(r.ops) >= window {
		r.judge()
	}
}

// judge judges the operations of the window, unless an operation is under way.
func (r *Register) judge() {
	if len(r.open) > 0 || len(r.ops) == 0 || r.violated != "" {
		return
	}
	now := int64(boottime.Now())
	for _, o := range r.ops {
		now = max(now, o.Return+1)
	}
	ops := append(r.ops, porcupine.Operation{ClientId: len(r.names), Input: history.Read, Call: now,
		Output: history.Result{Known: true, Value: r.counter.Value}, Return: now + 1})
	switch porcupine.CheckOperationsTimeout(history.Counter(r.first), ops, judging) {
	case porcupine.Illegal:
		r.violated = fmt.Sprintf("the counter: no order of %d operations explains their answers, from %d on to %d", len(ops), r.first, r.counter.Value)
	case porcupine.Unknown:
		r.counts.Undecided++
	}
	r.counts.Windows++
	if r.violated == "" {
		r.first, r.ops = r.counter.Value, nil
	}
}

// act remembers that a program knew, at an instant, that it leads.
func (r *Register) act(program, host string, a actor.Ask) {
	at := election.Instant(a.At)
	for i := range slices.Backward(r.acts) {
		if s := &r.acts[i]; s.Program == program && s.Term == a.Token {
			s.From, s.To = min(s.From, at), max(s.To, at)
			return
		}
	}
	if len(r.acts) == maxActs {
		r.acts = slices.Delete(r.acts, 0, maxActs/4)
	}
	r.acts = append(r.acts, observe.ProgramSpan{Program: program, Host: host, Election: Election, Term: a.Token, From: at, To: at})
}

// Check judges what can be judged now. It returns what was violated, "" if nothing was.
func (r *Register) Check() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judge()
	return r.violated
}

// Acts returns when programs acted, as far as it is remembered.
func (r *Register) Acts() []observe.ProgramSpan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.acts)
}

// Counts returns the counts until now.
func (r *Register) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// LastAdd returns when a program last added to the counter.
func (r *Register) LastAdd() election.Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastAdd
}

// History returns the operations of the window that violates the specification. If no window
// does, it returns those that are not judged yet.
func (r *Register) History() []porcupine.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}
