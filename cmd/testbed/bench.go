package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
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
			"A quiet machine gives figures that mean something. Several numbers of agents, algorithms or profiles\n" +
			"measure each combination, and how cost grows:\n" +
			"  testbed bench --agents 3,5,9,25,50 --algorithm both --json scale.json\n" +
			"  testbed bench compare before.json after.json\n\n" +
			"Exit codes: 0 every target was met, 1 one was missed or something could not be measured, 64 usage.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "rounds", Usage: "`NUMBER` of kills of the leader; the other measurements follow from it", Value: bench.DefaultRounds},
			&cli.StringFlag{Name: "only", Usage: "measure these `PARTS` only: " + strings.Join(bench.Parts(), ",")},
			&cli.IntFlag{Name: "busy", Usage: "`NUMBER` of busy loops beside the agents in part load; 0: on a quiet machine only", Value: bench.DefaultBusy},
			&cli.StringFlag{Name: "json", Usage: "write the report, every sample included, to this `FILE`"},
			&cli.StringFlag{Name: "binary", Usage: "`PATH` of the doyen to measure (default: it is built)"},
			&cli.StringFlag{Name: "agents", Usage: fmt.Sprintf("`NUMBERS` of them, 3 to %d, as in 3,5,9", hosts.MaxAgents), Value: "3"},
			&cli.StringFlag{Name: "algorithm", Usage: "`NAMES` of the ways to choose: bully, ring or both", Value: "bully"},
			&cli.StringFlag{Name: "profile", Usage: "`NAMES`: local, lan or wan", Value: "lan"},
			&cli.BoolFlag{Name: "netns", Usage: "each agent in a separate network namespace: links can be cut and packets counted"},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that the faults' moments follow from", DefaultText: "random"},
		},
		Action:      runBench,
		Subcommands: []*cli.Command{compareCommand()},
	}
}

func runBench(c *cli.Context) error {
	points, err := bench.ParsePoints(c.String("agents"), c.String("algorithm"), c.String("profile"))
	if err != nil {
		return usage("`testbed bench --help` lists the flags", "%v", err)
	}
	o := bench.Options{
		Agents: points[0].Agents, Algorithm: points[0].Algorithm, Profile: points[0].Profile, More: points[1:],
		Rounds: c.Int("rounds"), Busy: c.Int("busy"), Seed: c.Uint64("seed"), Progress: c.App.ErrWriter,
		Only: strings.FieldsFunc(c.String("only"), func(r rune) bool { return r == ',' || r == ' ' }),
	}
	if c.Bool("netns") {
		if err := needNetworks(); err != nil {
			return err
		}
		o.Net = hosts.Namespaces
	}
	if !c.IsSet("seed") {
		o.Seed = rand.Uint64()
	}
	if path := c.String("binary"); path != "" {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("find %s: %w", path, err)
		}
		o.Binary = absolute
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
	fmt.Fprint(c.App.Writer, found.Table())
	if file := c.String("json"); file != "" {
		if writeErr := writeJSON(file, found); writeErr != nil && err == nil {
			err = writeErr
		}
	}
	if err != nil {
		return err
	}
	if missed := found.Missed(); len(missed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(missed, "\nmissed: "))
	}
	return nil
}

func writeJSON(path string, found bench.Report) error {
	encoded, err := json.MarshalIndent(found, "", " ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if err := os.WriteFile(path, append(encoded, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "put two reports of bench side by side",
		ArgsUsage: "BEFORE.json AFTER.json",
		Description: "What differs by more than chance is called better or worse.\n\n" +
			"Exit codes: 0 compared, 1 a target that was met before is missed, or a file can't be read; 64 usage.",
		OnUsageError: onUsageError,
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return usage("testbed bench compare BEFORE.json AFTER.json", "compare takes two files, got %d", c.NArg())
			}
			before, err := bench.ReadReport(c.Args().Get(0))
			if err != nil {
				return err
			}
			after, err := bench.ReadReport(c.Args().Get(1))
			if err != nil {
				return err
			}
			compared := bench.Compare(before, after)
			fmt.Fprint(c.App.Writer, compared.Table())
			if missed := compared.Missed(); len(missed) > 0 {
				return fmt.Errorf("missed: %s", strings.Join(missed, "\nmissed: "))
			}
			return nil
		},
	}
}
