package main

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/jobsim"
	"github.com/doyen-election/doyen/testbed/simulation"
)

func simulateCommand() *cli.Command {
	return &cli.Command{
		Name:  "simulate",
		Usage: "search simulated worlds for two leaders and other broken promises",
		Description: "Each seed is a cluster in virtual time, under faults. It plays seeds until the first that breaks a promise,\n" +
			"or until --for, --seeds or ctrl-c. What breaks one is shrunk to a short story and the command that replays it.\n" +
			"Without a budget it plays for one minute.\n\n" +
			"Exit codes: 0 no promise was broken, 1 one was, 64 usage.",
		Flags: []cli.Flag{
			&cli.Uint64Flag{Name: "seeds", Usage: "play this `NUMBER` of seeds"},
			&cli.DurationFlag{Name: "for", Usage: "play for this `TIME`"},
			&cli.Uint64Flag{Name: "from", Usage: "the first `SEED`", Value: 1},
			&cli.Uint64Flag{Name: "seed", Usage: "play this `SEED` only"},
			&cli.StringFlag{Name: "shrunk", Usage: "what to omit from the seed's world, in the `JSON` of a replay command"},
			&cli.StringFlag{Name: "html", Usage: "draw what breaks a promise, or the one seed, as a space-time diagram in this `FILE`"},
			&cli.IntFlag{Name: "cores", Usage: "`NUMBER` of them to use", Value: runtime.GOMAXPROCS(0)},
			&cli.Float64Flag{Name: "drift", Usage: "let clocks stray by this `PERCENT`; above 1 is more than the protocol allows for, and expected to break", DefaultText: "1"},
			&cli.StringFlag{Name: "rule", Usage: "search only for what breaks this `RULE`, such as G1"},
			&cli.BoolFlag{Name: "jobs", Usage: "play worlds of a cron job instead: no occurrence starts twice or is passed over in silence"},
			&cli.IntFlag{Name: "occurrences", Usage: "with --jobs: `NUMBER` of them to play", Value: 1_000_000},
			&cli.IntFlag{Name: "tries", Usage: "`NUMBER` of worlds that shrinking may play; 0: do not shrink", Value: simulation.DefaultTries},
		},
		Action: simulate,
	}
}

func simulate(c *cli.Context) error {
	hint := "`testbed simulate --help` lists the flags"
	shrunk, err := simulation.ParseShrunk(c.String("shrunk"))
	drift := int64(math.Round(c.Float64("drift") * 10_000)) // parts per million
	switch {
	case err != nil:
		return usage("copy it from the replay command", "--shrunk: %v", err)
	case c.IsSet("shrunk") && !c.IsSet("seed"):
		return usage("a replay command has both", "--shrunk: there is no --seed")
	case c.Int("cores") < 1 || c.Int("cores") > 1024:
		return usage(hint, "--cores: %d is not from 1 to 1024", c.Int("cores"))
	case drift < 0 || drift > 900_000:
		return usage(hint, "--drift: %g is not from 0 to 90", c.Float64("drift"))
	case c.Int("occurrences") < 1 || c.IsSet("occurrences") && !c.Bool("jobs"):
		return usage(hint, "--occurrences: it is a number above 0, and goes with --jobs")
	case c.Duration("for") < 0 || c.Int("tries") < 0:
		return usage(hint, "--for and --tries: they can't be negative")
	}
	if c.Bool("jobs") {
		return simulateJobs(c)
	}
	run := simulation.Campaign{
		SweepOptions: simulation.SweepOptions{
			Options: simulation.Options{Seed: c.Uint64("seed"), Drift: drift, Shrunk: shrunk,
				Rule: c.String("rule")},
			From: c.Uint64("from"), Seeds: c.Uint64("seeds"), For: c.Duration("for"), Cores: c.Int("cores"), Log: c.App.ErrWriter,
		},
		Single: c.IsSet("seed"), HTML: c.String("html"), Tries: c.Int("tries"), Out: c.App.Writer,
	}
	if run.Seeds == 0 && run.For == 0 {
		run.For = time.Minute
	}
	return wrap.Error(run.Run(c.Context), "simulate")
}

// simulateJobs plays worlds from a seed on, or shows the story of one.
func simulateJobs(c *cli.Context) error {
	from, occurrences := c.Uint64("from"), c.Int("occurrences")
	if c.IsSet("seed") {
		from, occurrences = c.Uint64("seed"), 1
		fmt.Fprint(c.App.Writer, jobsim.Story(from, math.MaxInt))
	}
	counts, err := jobsim.Sweep(c.Context, from, occurrences)
	counts.Print(c.App.Writer)
	if err != nil {
		return fmt.Errorf("simulate jobs: a promise was not kept: %w", err)
	}
	fmt.Fprintln(c.App.Writer, "no promise was broken: 0 started twice, 0 passed over in silence")
	return nil
}
