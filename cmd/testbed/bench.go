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
)

func benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure what is promised of speed and size",
		Description: "It builds the product, which needs the source tree, or takes --binary, and runs for some minutes.\n" +
			"A quiet machine gives figures that mean something.\n\n" +
			"Exit codes: 0 every target was met, 1 one was missed or something could not be measured, 64 usage.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "rounds", Usage: "`NUMBER` of kills of the leader; the other measurements follow from it", Value: bench.DefaultRounds},
			&cli.StringFlag{Name: "only", Usage: "measure these `PARTS` only: " + strings.Join(bench.Parts(), ",")},
			&cli.StringFlag{Name: "json", Usage: "write the report, every sample included, to this `FILE`"},
			&cli.StringFlag{Name: "binary", Usage: "`PATH` of the doyen to measure (default: it is built)"},
			&cli.IntFlag{Name: "agents", Usage: "`NUMBER` of them, 3 to 24", Value: 3},
			&cli.StringFlag{Name: "algorithm", Usage: "`NAME` of the way to choose: bully or ring", Value: "bully"},
			&cli.StringFlag{Name: "profile", Usage: "`NAME`: local, lan or wan", Value: "lan"},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that the faults' moments follow from", DefaultText: "random"},
		},
		Action: runBench,
	}
}

func runBench(c *cli.Context) error {
	o := bench.Options{
		Agents: c.Int("agents"), Algorithm: c.String("algorithm"), Profile: c.String("profile"),
		Rounds: c.Int("rounds"), Seed: c.Uint64("seed"), Progress: c.App.ErrWriter,
		Only: strings.FieldsFunc(c.String("only"), func(r rune) bool { return r == ',' || r == ' ' }),
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
