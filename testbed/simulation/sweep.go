package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/testbed/spacetime"
)

// SweepOptions choose which seeds to play, and for how long.
type SweepOptions struct {
	Options                   // of every run, except for the seed
	From, Seeds uint64        // how many seeds, from From on; 0: until ctx ends or For has passed
	For         time.Duration // 0: no limit
	Cores       int
	Log         io.Writer // where progress is shown; nil: nowhere
}

type Progress struct {
	Seeds   uint64 // how many were played
	Next    uint64 // the next seed
	Elapsed time.Duration
	Stats
}

// Rate returns the steps per second of real time, on all cores together.
func (p Progress) Rate() float64 { return float64(p.Steps) / max(p.Elapsed.Seconds(), 1e-9) }

// Sweep plays seeds on several cores until all are played, For has passed, ctx ends, or a run
// violates a rule. It returns the violation with the lowest seed; nil if there is none. It
// plays every seed below the highest that it played.
func Sweep(ctx context.Context, o SweepOptions) (Progress, *Violation) {
	// Runs are short, and what a run allocates is garbage at its end.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.For > 0 {
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	s := &sweep{SweepOptions: o, began: time.Now(), shown: time.Now()}
	var wg sync.WaitGroup
	for range max(1, o.Cores) {
		wg.Go(func() { s.play(ctx, cancel) })
	}
	wg.Wait()
	return s.progress(), s.worst
}

type sweep struct {
	SweepOptions
	began time.Time
	taken atomic.Uint64 // how many seeds are taken

	mu    sync.Mutex
	shown time.Time // when progress was reported last
	total Stats
	done  uint64
	worst *Violation
}

func (s *sweep) play(ctx context.Context, cancel func()) {
	for ctx.Err() == nil {
		n := s.taken.Add(1) - 1
		if s.Seeds > 0 && n >= s.Seeds {
			return
		}
		o := s.Options
		o.Seed = s.From + n
		r := Run(o)
		s.mu.Lock()
		s.done++
		s.total.Add(r.Stats)
		if v := r.Violation; v != nil {
			if s.worst == nil || v.Seed < s.worst.Seed {
				s.worst = v
			}
			cancel()
		}
		if s.Log != nil && time.Since(s.shown) >= printEvery {
			s.shown = time.Now()
			fmt.Fprintln(s.Log, s.progress())
		}
		s.mu.Unlock()
	}
}

func (s *sweep) progress() Progress {
	p := Progress{Seeds: s.done, Next: s.From + s.done, Elapsed: time.Since(s.began)}
	p.Stats.Add(s.total)
	return p
}

// gcPercent lets the heap grow: a run keeps almost nothing for long.
const gcPercent = 1600

const (
	printEvery = 5 * time.Second // how often progress is shown
	storyLines = 80
)

// Campaign is a search for violations. A person watches its progress.
type Campaign struct {
	SweepOptions
	Single bool   // play the options' seed only
	HTML   string // file to draw the violation, or the single seed, in; "": none
	Tries  int    // worlds that shrinking may play; 0: do not shrink
	Out    io.Writer
}

// ErrViolated reports that a promise was not kept. What is known about it has been written to
// Out.
var ErrViolated = errors.New("a promise was not kept")

// Run plays the seeds and writes the outcome to Out. The error is ErrViolated if a run violated
// a rule.
func (c Campaign) Run(ctx context.Context) error {
	if c.Single {
		return c.single(ctx)
	}
	p, v := Sweep(ctx, c.SweepOptions)
	fmt.Fprintln(c.Log, p)
	fmt.Fprintf(c.Out, "%d seeds, %d to %d, in %v: %.0f steps/s on %d cores\n%s\n", p.Seeds, c.From, max(p.Next, 1)-1,
		p.Elapsed.Round(time.Millisecond), p.Rate(), c.Cores, p.Stats)
	if v == nil {
		fmt.Fprintln(c.Out, "no promise was broken")
		return nil
	}
	o := c.Options
	o.Seed = v.Seed
	return c.explain(ctx, o, v)
}

func (c Campaign) single(ctx context.Context) error {
	o := c.Options
	o.Record = true
	r := Run(o)
	fmt.Fprintf(c.Out, "seed %d: %s\n%s\n", o.Seed, r.History.plan, r.Stats)
	if r.Violation != nil {
		return c.explain(ctx, o, r.Violation)
	}
	fmt.Fprintln(c.Out, "no promise was broken")
	return c.draw(r)
}

// explain shrinks the violating world, and shows what is left of it.
func (c Campaign) explain(ctx context.Context, o Options, v *Violation) error {
	fmt.Fprintf(c.Out, "\n%v\n", v)
	if c.Tries > 0 && o.Shrunk.whole() {
		fmt.Fprintf(c.Log, "shrinking seed %d\n", v.Seed)
		if s := Shrink(ctx, o, c.Tries, c.Cores); s != nil {
			o = s.Options
			if o.Shrunk.whole() {
				fmt.Fprintf(c.Out, "\nnot shrunk: %d tries found nothing to leave out of its %d faults\n", s.Tries, s.Before)
			} else {
				fmt.Fprintf(c.Out, "\nshrunk in %d tries from %d faults to %d:\n", s.Tries, s.Before, s.Faults)
			}
			fmt.Fprintf(c.Out, "replay: %s\n", o.Command())
		}
	}
	o.Record = true
	r := Run(o)
	fmt.Fprintf(c.Out, "\n%s\n%s\n", r.History.plan, strings.Join(r.History.Story(storyLines), "\n"))
	return errors.Join(ErrViolated, c.draw(r))
}

func (c Campaign) draw(r Result) error {
	if c.HTML == "" {
		return nil
	}
	file, err := os.Create(c.HTML)
	if err != nil {
		return fmt.Errorf("draw the run: %w", err)
	}
	if err := errors.Join(spacetime.Write(file, r.Diagram()), file.Close()); err != nil {
		return fmt.Errorf("draw the run: %w", err)
	}
	fmt.Fprintf(c.Out, "drawn in %s\n", c.HTML)
	return nil
}

func (p Progress) String() string {
	return fmt.Sprintf("%v  %d seeds  %d steps  %.0f steps/s  %d faults  %d leaderships  worst heal %.1f leases (seed %d)",
		p.Elapsed.Round(time.Second), p.Seeds, p.Steps, p.Rate(), p.Injected(), p.Leaderships, p.HealLeases, p.HealSeed)
}
