package exhaustive

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Options choose what to explore.
type Options struct {
	Ring   bool // Ring instead of Bully
	States int  // at most so many distinct states are visited
	Bounds Bounds

	broken breakage                 // a rule that a test breaks, to show that the search notices it
	rates  [][size]election.Instant // instead of clockRates
	root   string                   // the name of the only root to start from; empty: all roots
}

// breakage is a rule that the world outside the electors breaks.
type breakage uint8

const (
	nothingBroken          breakage = iota
	losesAcknowledgedWrite          // a crash of c takes back the last write, although it was acknowledged
	leasesAgain                     // the next life of a leader counts a whole lease from its start (K4a)
)

func (o Options) maxTerm() election.Term { return election.Term(o.Bounds.Terms) }

// Result is what was explored.
type Result struct {
	Roots       int
	States      int  // distinct states, all checked
	Transitions int  // actions carried out, all checked
	Depth       int  // all states up to this many actions from a root were visited
	Leaders     int  // states in which a second or later leader begins
	Beyond      int  // states not explored further: a term above the bound was asked for
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

// pending is a state to expand. Beyond the first keptWorlds states of a level, only the parent is kept: it
// takes one step to make the state again, and a world's memory to keep it.
type pending struct {
	world  *world // nil: made from the parent by the action
	parent *world
	action action
	node   int32
}

const keptWorlds = 2048

// node is how a state was first reached.
type node struct {
	parent int32 // -1: a root
	action action
}

// found is a successor of a pending state.
type found struct {
	action action
	world  *world
	hash   uint64
	later  bool
}

type explorer struct {
	options Options
	result  Result
	roots   []root
	visited map[uint64]struct{}
	nodes   []node
	workers []*worker
}

// worker expands states, independently of other workers.
type worker struct {
	mover   *mover
	actions []action
}

// expansion is a state that was made again, with its successors.
type expansion struct {
	world *world
	next  []found
}

// Explore visits states breadth first until none is left, the limit is reached, or a rule is
// violated. Equal options give equal results, except for the time.
func Explore(o Options) (Result, error) {
	began := time.Now()
	x := &explorer{options: o, visited: map[uint64]struct{}{}, result: Result{Bounds: o.Bounds}}
	for range runtime.GOMAXPROCS(0) {
		x.workers = append(x.workers, &worker{mover: newMover(o)})
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
		x.visited[r.world.hash(x.options.Bounds)] = struct{}{}
		x.nodes = append(x.nodes, node{parent: -1})
		level = append(level, pending{world: r.world, node: int32(i)})
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

// expandLevel expands all states of one depth. It returns false if the search ends within that
// depth.
func (x *explorer) expandLevel(level []pending) ([]pending, bool) {
	const batch = 1024
	var next []pending
	for begin := 0; begin < len(level); begin += batch {
		part := level[begin:min(begin+batch, len(level))]
		expanded := x.expand(part)
		for i, e := range expanded {
			x.result.Transitions += len(e.next)
			for _, f := range e.next {
				if f.world.fault != nil {
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
				if f.world.beyond {
					continue
				}
				p := pending{parent: e.world, action: f.action, node: int32(len(x.nodes) - 1)}
				if len(next) < keptWorlds {
					p.world = f.world
				}
				next = append(next, p)
			}
		}
		clear(part) // so that the memory of its worlds can be freed
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
	if f.world.beyond {
		x.result.Beyond++
	}
}

// expand expands the states of a part of a level on all processors. The result keeps their order.
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
	w := p.world
	if w == nil {
		w = k.mover.apply(p.parent, p.action)
	}
	e := expansion{world: w}
	k.actions = w.actions(bounds, k.actions[:0])
	for _, a := range k.actions {
		s := k.mover.apply(w, a)
		e.next = append(e.next, found{action: a, world: s, hash: s.hash(bounds), later: s.last > w.last && s.last > 1})
	}
	return e
}

// explain plays the path to a violation again, and writes the path down as lines.
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
	v := *f.world.fault
	v.Path = lines
	return &v
}

// Found is what a search of a world of plain values has found.
type Found struct {
	States    int
	Depth     int  // every state up to this many steps was visited
	Complete  bool // there are no other states
	Violation error
	Path      []string // to the violation
}

func (f Found) String() string {
	text := fmt.Sprintf("%d states, complete to depth %d (all: %v)", f.States, f.Depth, f.Complete)
	if f.Violation != nil {
		text += fmt.Sprintf("\n%v\n%s", f.Violation, strings.Join(f.Path, "\n"))
	}
	return text
}

// step is one thing that can happen in a world.
type step[W any] struct {
	text string
	do   func(W)
}

// searched is a world whose steps are tried in every order.
type searched[W any] interface {
	*W
	steps() []step[*W]
	key() string  // distinguishes states
	check() error // what is wrong with this state; called only for a state that is new
}

// search visits the states of a world breadth first, at most the given number.
func search[W any, P searched[W]](first P, most int) Found {
	c := newCopier()
	return breadthFirst(first, P.key, most, func(w P, f func(stepTo[P])) {
		for _, step := range w.steps() {
			next := P(copied(c, (*W)(w)))
			step.do((*W)(next))
			f(stepTo[P]{next: next, what: func() string { return step.text }})
		}
	}, P.check)
}

// take takes the named steps.
func take[W any, P searched[W]](w P, names ...string) error {
	for _, name := range names {
		steps := w.steps()
		i := slices.IndexFunc(steps, func(s step[*W]) bool { return s.text == name })
		if i < 0 {
			return fmt.Errorf("%q can't happen there", name)
		}
		steps[i].do((*W)(w))
	}
	return nil
}
