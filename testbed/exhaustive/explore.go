package exhaustive

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Options say what to explore. The zero value of Bounds means DefaultBounds.
type Options struct {
	Ring   bool // else Bully
	States int  // distinct states to visit at most
	Bounds Bounds

	broken breakage                 // what tests break, to show that it is found
	rates  [][size]election.Instant // instead of clockRates
	root   string                   // the one to start from; empty: all
}

// breakage is a rule that the world around the electors breaks.
type breakage uint8

const (
	nothingBroken          breakage = iota
	losesAcknowledgedWrite          // a crash of c takes back the last write, acknowledged though it was
	revealsEarly                    // a keeper reveals the secret while programs act (K5)
	goesOnAfterReveal               // and does not destroy the record (K6)
)

// DefaultBounds leave room for a second leader beside the first.
func DefaultBounds() Bounds { return Bounds{Terms: 3, Misfortunes: 2} }

func (o Options) maxTerm() election.Term { return election.Term(o.Bounds.Terms) }

// Result is what was explored.
type Result struct {
	Roots       int
	States      int  // distinct, checked
	Transitions int  // carried out, checked
	Depth       int  // all states at most so many actions from a root were visited
	Leaders     int  // states in which a later leader began
	Beyond      int  // not explored further: a term above the bound was asked for
	Complete    bool // nothing within the bounds is left
	Took        time.Duration
	Bounds      Bounds
	Violation   *Violation
}

func (r Result) String() string {
	end := "stopped at the limit of states"
	if r.Complete {
		end = "complete"
	}
	return fmt.Sprintf("%d states (in %d a later leader begins, %d at the bound of terms), %d transitions, depth %d in full, %s, from %d roots in %v (%.0f states/s)\nbounds: %s",
		r.States, r.Leaders, r.Beyond, r.Transitions, r.Depth, end, r.Roots, r.Took.Round(time.Millisecond),
		float64(r.States)/r.Took.Seconds(), r.Bounds)
}

// pending is a state to expand. Only its parent is kept: making it again costs
// one step, and keeping it would cost the memory of a world.
type pending struct {
	parent *world
	action action
	root   bool // parent is the state itself
	node   int32
}

// node tells how a state was first reached.
type node struct {
	parent int32 // -1: a root
	action action
}

// found is a successor of a pending state.
type found struct {
	action action
	hash   uint64
	beyond bool
	later  bool
	fault  *Violation
}

type explorer struct {
	options Options
	result  Result
	roots   []root
	visited map[uint64]struct{}
	nodes   []node
	workers []*worker
}

// worker expands states, apart from the others.
type worker struct {
	mover   *mover
	actions []action
}

// expansion is a state made again, and what it leads to.
type expansion struct {
	world *world
	next  []found
}

// Explore visits states breadth first until none is left, the limit is reached
// or a rule is violated. Equal options give equal results, but for the time.
func Explore(o Options) (Result, error) {
	if o.Bounds == (Bounds{}) {
		o.Bounds = DefaultBounds()
	}
	began := time.Now()
	x := &explorer{options: o, visited: map[uint64]struct{}{}, result: Result{Bounds: o.Bounds}}
	for range runtime.GOMAXPROCS(0) {
		x.workers = append(x.workers, &worker{mover: &mover{options: o}})
	}
	var err error
	if x.roots, err = x.workers[0].mover.roots(); err != nil {
		return Result{}, err
	}
	x.run()
	x.result.Took = time.Since(began)
	return x.result, nil
}

func (x *explorer) run() {
	var level []pending
	for i, r := range x.roots {
		x.visited[r.world.hash()] = struct{}{}
		x.nodes = append(x.nodes, node{parent: -1})
		level = append(level, pending{parent: r.world, root: true, node: int32(i)})
	}
	x.result.Roots, x.result.States = len(x.roots), len(x.roots)
	for ; len(level) > 0; x.result.Depth++ {
		next, more := x.expandLevel(level)
		if !more {
			return
		}
		level = next
	}
	x.result.Complete = true
}

// expandLevel expands all states of one depth. It reports false when the search
// ends within it.
func (x *explorer) expandLevel(level []pending) ([]pending, bool) {
	const batch = 1024
	var next []pending
	for begin := 0; begin < len(level); begin += batch {
		part := level[begin:min(begin+batch, len(level))]
		expanded := x.expand(part)
		for i, e := range expanded {
			x.result.Transitions += len(e.next)
			for _, f := range e.next {
				if f.fault != nil {
					x.result.Violation = x.explain(part[i].node, f)
					return nil, false
				}
				if _, seen := x.visited[f.hash]; seen {
					continue
				}
				if x.result.States >= x.options.States {
					return nil, false
				}
				x.add(f, part[i].node)
				if !f.beyond {
					next = append(next, pending{parent: e.world, action: f.action, node: int32(len(x.nodes) - 1)})
				}
			}
		}
		clear(part) // what was expanded is no longer needed
	}
	return next, true
}

func (x *explorer) add(f found, parent int32) {
	x.visited[f.hash] = struct{}{}
	x.nodes = append(x.nodes, node{parent: parent, action: f.action})
	x.result.States++
	if f.later {
		x.result.Leaders++
	}
	if f.beyond {
		x.result.Beyond++
	}
}

// expand makes the states of a part of a level, on all processors, in order.
func (x *explorer) expand(part []pending) []expansion {
	expanded := make([]expansion, len(part))
	var wg sync.WaitGroup
	share := (len(part) + len(x.workers) - 1) / len(x.workers)
	for i, w := range x.workers {
		wg.Go(func() {
			for j := i * share; j < min((i+1)*share, len(part)); j++ {
				expanded[j] = w.expand(part[j], x.options.Bounds)
			}
		})
	}
	wg.Wait()
	return expanded
}

func (k *worker) expand(p pending, bounds Bounds) expansion {
	w := p.parent
	if !p.root {
		w = k.mover.apply(p.parent, p.action)
	}
	e := expansion{world: w}
	k.actions = w.actions(bounds, k.actions[:0])
	for _, a := range k.actions {
		s := k.mover.apply(w, a)
		e.next = append(e.next, found{action: a, hash: s.hash(), beyond: s.beyond, fault: s.fault,
			later: s.last > w.last && s.last > 1})
	}
	return e
}

// explain plays the path to a violation again, and writes it down.
func (x *explorer) explain(from int32, f found) *Violation {
	path := []action{f.action}
	n := from
	for ; x.nodes[n].parent >= 0; n = x.nodes[n].parent {
		path = append(path, x.nodes[n].action)
	}
	r := x.roots[n]
	lines := []string{"root: " + r.name}
	w := *r.world
	w.log = &lines
	at := &w
	for i := len(path) - 1; i >= 0; i-- {
		at = x.workers[0].mover.apply(at, path[i])
	}
	v := *f.fault
	v.Path = lines
	return &v
}
