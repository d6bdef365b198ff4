package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/testbed/bench"
	"github.com/doyen-election/doyen/testbed/observe"
	"github.com/doyen-election/doyen/testbed/report"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:  "report",
		Usage: "show what was recorded and measured as a page",
		Description: "It draws what `testbed run --record`, `testbed soak --record` and `testbed bench --out` wrote: who led when\n" +
			"under which faults, how long takeovers took, what more agents cost; and the messages of simulated elections.\n" +
			"The page is one file that needs nothing else.\n\n" +
			"Exit codes: 0 written, 1 a file can't be read or written, 64 usage.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "recording", Usage: "`FILE` of a recorded run"},
			&cli.StringFlag{Name: "bench", Usage: "`FILE` that bench wrote"},
			&cli.StringFlag{Name: "before", Usage: "another `FILE` that bench wrote, to compare with"},
			&cli.BoolFlag{Name: "messages", Usage: "add the messages of a simulated election, by bully and by ring"},
			&cli.StringFlag{Name: "title", Usage: "`TEXT` over the page", Value: "Doyen on the testbed"},
			&cli.StringFlag{Name: "out", Usage: "`FILE` to write the page to", Value: "report.html"},
			&cli.StringFlag{Name: "plots", Usage: "write the charts of --bench as SVG files into this `FOLDER`, and no page"},
			&cli.BoolFlag{Name: "open", Usage: "say where the page is, and show it in a browser if there is a display"},
		},
		Action: writeReport,
	}
}

func writeReport(c *cli.Context) error {
	hint := "`testbed report --help` lists the flags"
	switch {
	case c.String("recording") == "" && c.String("bench") == "" && !c.Bool("messages"):
		return usage(hint, "nothing to show: give --recording, --bench or --messages")
	case c.String("bench") == "" && (c.String("plots") != "" || c.String("before") != ""):
		return usage(hint, "--plots and --before: there is no --bench")
	}
	p := report.Page{Title: c.String("title")}
	var err error
	if path := c.String("recording"); path != "" {
		if p.Recording, err = observe.ReadRecording(path); err != nil {
			return err
		}
	}
	if path := c.String("bench"); path != "" {
		r, err := bench.ReadReport(path)
		if err != nil {
			return err
		}
		after, before := r.Builds()
		p.Bench, p.Before = &after, before
	}
	if path := c.String("before"); path != "" {
		r, err := bench.ReadReport(path)
		if err != nil {
			return err
		}
		p.Before = &r
	}
	if dir := c.String("plots"); dir != "" {
		files, err := report.WritePlots(dir, *p.Bench)
		for _, f := range files {
			fmt.Fprintln(c.App.Writer, f)
		}
		return err
	}
	if c.Bool("messages") {
		if err := addMessages(&p); err != nil {
			return err
		}
	}
	return showReport(c, c.String("out"), p)
}

func addMessages(p *report.Page) error {
	const voters = 5
	for _, algorithm := range []string{"bully", "ring"} {
		d, err := report.Simulated(algorithm, voters)
		if err != nil {
			return err
		}
		p.Diagrams = append(p.Diagrams, d)
	}
	return nil
}

func showReport(c *cli.Context, path string, p report.Page) error {
	if err := report.WriteFile(path, p); err != nil {
		return err
	}
	if c.Bool("open") {
		return report.Open(c.Context, path, c.App.Writer, os.Getenv)
	}
	fmt.Fprintf(c.App.Writer, "written to %s\n", path)
	return nil
}
