package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/testbed/bench"
	"github.com/doyen-election/doyen/testbed/hosts"
)

func benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure what is promised of speed and size",
		Description: "It builds the product, which needs the source tree, or takes --binary, and runs for some minutes.\n" +
			"Figures of a busy machine mean little. Several numbers of agents, algorithms or profiles measure each\n" +
			"combination, and how cost grows. Results are in Go's benchmark format, which benchstat reads:\n" +
			"  testbed bench --agents 3,5,9,25,50 --algorithm both --out scale.txt\n" +
			"  go run golang.org/x/perf/cmd/benchstat before.txt after.txt\n" +
			"  testbed bench --before old/doyen --out run.txt    # two builds in turns\n" +
			"  go run golang.org/x/perf/cmd/benchstat -col build run.txt\n\n" +
			"Exit codes: 0 every target was met, 1 one was missed or something could not be measured, 64 usage.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "rounds", Usage: "`NUMBER` of kills of the leader; the other measurements follow from it", Value: bench.DefaultRounds},
			&cli.StringFlag{Name: "only", Usage: "measure these `PARTS` only: " + strings.Join(bench.Parts(), ",")},
			&cli.StringFlag{Name: "out", Usage: "write the results to this `FILE`, a line for each round, in Go's benchmark format"},
			&cli.StringFlag{Name: "binary", Usage: "`PATH` of the doyen to measure (default: it is built)"},
			&cli.StringFlag{Name: "before", Usage: "`PATH` of another doyen, to measure in turns"},
			&cli.IntSliceFlag{Name: "agents", Usage: fmt.Sprintf("`NUMBERS` of them, 3 to %d, as in 3,5,9", hosts.MaxAgents), Value: cli.NewIntSlice(3)},
			&cli.StringSliceFlag{Name: "algorithm", Usage: "`NAMES` of the ways to choose: bully, ring or both", Value: cli.NewStringSlice("bully")},
			&cli.StringSliceFlag{Name: "profile", Usage: "`NAMES`: local, lan or wan", Value: cli.NewStringSlice("lan")},
			&cli.BoolFlag{Name: "netns", Usage: "each agent in a separate network namespace: links can be cut and packets counted"},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that the faults' moments follow from", DefaultText: "random"},
		},
		Action: runBench,
	}
}

func runBench(c *cli.Context) error {
	o := bench.Options{
		Points: bench.Points(c.IntSlice("agents"), c.StringSlice("algorithm"), c.StringSlice("profile")),
		Rounds: c.Int("rounds"), Seed: seedOf(c), Progress: c.App.ErrWriter,
		Only: strings.FieldsFunc(c.String("only"), func(r rune) bool { return r == ',' || r == ' ' }),
	}
	for flag, path := range map[string]*string{"binary": &o.Binary, "before": &o.Before} {
		if c.String(flag) == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(c.String(flag)); err != nil {
			return fmt.Errorf("find %s: %w", c.String(flag), err)
		}
	}
	if c.Bool("netns") {
		o.Net = hosts.Namespaces
	}
	if err := o.Check(); err != nil {
		return usage("`testbed bench --help` lists the flags", "%v", err)
	}
	if o.Net == hosts.Namespaces {
		if err := needNetworks(); err != nil {
			return fmt.Errorf("--netns: %w", err)
		}
	}
	found, err := bench.Run(c.Context, o)
	after, before := found.Builds()
	if before != nil {
		fmt.Fprintf(c.App.Writer, "The build before:\n\n%s\nThe build after:\n\n", before.Table())
	}
	fmt.Fprint(c.App.Writer, after.Table())
	if path := c.String("out"); path != "" {
		if writeErr := writeReportOf(path, found); writeErr != nil && err == nil {
			err = writeErr
		}
	}
	if err != nil {
		return err
	}
	if missed := after.Missed(); len(missed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(missed, "\nmissed: "))
	}
	return nil
}

func writeReportOf(path string, found bench.Report) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return errors.Join(found.Write(file), file.Close())
}
