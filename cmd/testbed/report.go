package main

import (
	"fmt"

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
			"under which faults, how long takeovers took, what more agents cost.\n" +
			"The page is one file that needs nothing else.\n\n" +
			"Exit codes: 0 written, 1 a file can't be read or written, 64 usage.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "recording", Usage: "`FILE` of a recorded run"},
			&cli.StringFlag{Name: "bench", Usage: "`FILE` that bench wrote"},
			&cli.StringFlag{Name: "before", Usage: "another `FILE` that bench wrote, to compare with"},
			&cli.StringFlag{Name: "title", Usage: "`TEXT` over the page", Value: "Doyen on the testbed"},
			&cli.StringFlag{Name: "out", Usage: "`FILE` to write the page to", Value: "report.html"},
			&cli.StringFlag{Name: "plots", Usage: "write the charts of --bench as SVG files into this `FOLDER`, and no page"},
		},
		Action: writeReport,
	}
}

func writeReport(c *cli.Context) error {
	hint := "`testbed report --help` lists the flags"
	switch {
	case c.String("recording") == "" && c.String("bench") == "":
		return usage(hint, "nothing to show: give --recording or --bench")
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
	return showReport(c, c.String("out"), p)
}

func showReport(c *cli.Context, path string, p report.Page) error {
	if err := report.WriteFile(path, p); err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "written to %s\n", path)
	return nil
}
