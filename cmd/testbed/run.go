package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/report"
	"github.com/doyen-election/doyen/testbed/scenario"
)

const maxRunRounds = 10_000

func runScriptsCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "play scenario scripts, such as testbed/scenarios/leader-killed.txtar",
		ArgsUsage: "FILE...",
		Description: "A script starts agents, does to them what hosts and networks suffer, and states what must be seen then;\n" +
			"docs/testbed.md tells how to write one. It builds the product, which needs the source tree, or takes --binary.\n" +
			"As root each host gets its own network; other users get one where the system allows it.\n\n" +
			"Exit codes: 0 every script passed, 1 one failed, 64 usage.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "binary", Usage: "`PATH` of the doyen to run (default: it is built)"},
			&cli.StringFlag{Name: "report", Usage: "write what was seen, as a page to look at, to this `FILE`"},
			&cli.IntFlag{Name: "rounds", Usage: "play each script this `NUMBER` of times", Value: 1},
			&cli.BoolFlag{Name: "long", Usage: "let scripts last as long as their names promise"},
			&cli.BoolFlag{Name: "loopback", Usage: "stay on the loopback interface, without faults of the network"},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that random faults follow from", DefaultText: "random"},
			&cli.BoolFlag{Name: "verbose", Usage: "show each line of a script and what was seen"},
		},
		Action: runScripts,
	}
}

func runScripts(c *cli.Context) (err error) {
	files := c.Args().Slice()
	rounds := c.Int("rounds")
	one := len(files) == 1 && rounds == 1
	switch {
	case len(files) == 0:
		return usage("name scripts, such as testbed/scenarios/*.txtar", "no script is given")
	case rounds < 1 || rounds > maxRunRounds:
		return usage("`testbed run --help` lists the flags", "--rounds: %d is not between 1 and %d", rounds, maxRunRounds)
	case !one && c.IsSet("report"):
		return usage("play one script, once", "--report is for one run")
	}
	o := scenario.Options{Long: c.Bool("long"), Seed: seedOf(c), Verbose: c.Bool("verbose")}
	net, err := netOf(c)
	if err != nil {
		return err
	}
	o.Loopback = net == hosts.Loopback
	var clean func() error
	if o.Binary, clean, err = productBinary(c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean()) }()
	return playAll(c, o, files, rounds)
}

func playAll(c *cli.Context, o scenario.Options, files []string, rounds int) error {
	fmt.Fprintf(c.App.ErrWriter, "seed %d\n", o.Seed)
	failed, undecided := 0, 0
	o.Undecided = func(r scenario.Result) {
		undecided++
		tell(c.App.Writer, "undecided, played again:", r, true)
	}
	for range rounds {
		for _, file := range files {
			r, err := scenario.Run(c.Context, o, file)
			if err != nil {
				return err
			}
			tell(c.App.Writer, outcome(r), r, o.Verbose)
			if !r.Passed {
				failed++
			}
			if err := draw(c, report.Page{Title: r.Name, Recording: r.Recording}); err != nil {
				return err
			}
		}
	}
	if undecided > 0 {
		fmt.Fprintf(c.App.ErrWriter, "undecided plays: %d, since the machine was paused\n", undecided)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d did not pass; --seed %d repeats the network's random faults", failed, rounds*len(files), o.Seed)
	}
	return nil
}

// outcome is a word for how a script ended.
func outcome(r scenario.Result) string {
	switch {
	case r.Passed:
		return "pass"
	case r.Skipped:
		return "SKIP"
	case r.Excuse != "":
		return "UNDECIDED"
	}
	return "FAIL"
}

func tell(w io.Writer, word string, r scenario.Result, verbose bool) {
	fmt.Fprintf(w, "%s  %5.1f s  %s\n", word, r.Took.Round(100*time.Millisecond).Seconds(), r.Name)
	if r.Excuse != "" {
		fmt.Fprintf(w, "    %s\n", r.Excuse)
	}
	if !r.Passed || verbose {
		for line := range strings.Lines(strings.TrimSpace(r.Log)) {
			fmt.Fprintf(w, "    %s\n", strings.TrimRight(line, "\n"))
		}
	}
}

func productBinary(c *cli.Context) (hosts.Binary, func() error, error) {
	if path := c.String("binary"); path != "" {
		absolute, err := filepath.Abs(path)
		if err == nil {
			_, err = os.Stat(absolute)
		}
		return hosts.Binary{Path: absolute}, func() error { return nil }, err
	}
	dir, err := hosts.NewDir()
	if err != nil {
		return hosts.Binary{}, nil, err
	}
	path, err := hosts.Build(c.Context, dir.Path, hosts.Product)
	if err != nil {
		return hosts.Binary{}, nil, errors.Join(err, dir.Close())
	}
	return hosts.Binary{Path: path}, dir.Close, nil
}

// draw writes the page that --report asks for.
func draw(c *cli.Context, p report.Page) error {
	file := c.String("report")
	if p.Recording == nil || file == "" {
		return nil
	}
	fmt.Fprintf(c.App.ErrWriter, "drawn in %s\n", file)
	return report.WriteFile(file, p)
}
