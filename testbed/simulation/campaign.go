package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/doyen-election/doyen/testbed/spacetime"
)

const (
	printEvery = 5 * time.Second // how often progress is shown
	storyLines = 80
)

// Campaign is a search for violations whose progress a person watches.
type Campaign struct {
	SweepOptions
	Single bool   // play the options' seed only
	HTML   string // file to draw the violation, or the single seed, in; "": none
	Tries  int    // worlds that shrinking may play; 0: do not shrink
	Out    io.Writer
	Log    io.Writer // where progress is shown
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
	c.Every, c.Progress = printEvery, func(p Progress) { fmt.Fprintln(c.Log, p) }
	p, v := Sweep(ctx, c.SweepOptions)
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
	return fmt.Sprintf("%v  %d seeds  %s steps  %.0f steps/s  %d faults  %d leaderships  worst heal %.1f leases (seed %d)",
		p.Elapsed.Round(time.Second), p.Seeds, millions(p.Steps), p.Rate(), p.Injected(), p.Leaderships, p.HealLeases, p.HealSeed)
}

func millions(n int) string {
	if n < 1e6 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1f M", float64(n)/1e6)
}
